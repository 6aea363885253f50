"""Certificates for tests, made on the spot."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

Key = rsa.RSAPrivateKey

_PEM = serialization.Encoding.PEM


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _signed(text: str, key: Key, by: tuple[str, Key], address: str | None = None) -> x509.Certificate:
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(_name(text))
        .issuer_name(_name(by[0]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=text == by[0], path_length=None), critical=True)
    )
    if address is not None:
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
        made = made.add_extension(names, critical=False)
    return made.sign(by[1], hashes.SHA256())


def _key() -> Key:
    return rsa.generate_private_key(65537, 2048)


class Certificates:
    """An authority, and a certificate for an address, as files."""

    def __init__(self, folder: Path, address: str) -> None:
        folder.mkdir()
        authority, key = _key(), _key()
        self.ca, self.cert, self.key = folder / "ca.pem", folder / "cert.pem", folder / "key.pem"
        self.ca.write_bytes(_signed("authority", authority, ("authority", authority)).public_bytes(_PEM))
        self.cert.write_bytes(_signed("server", key, ("authority", authority), address).public_bytes(_PEM))
        plain = serialization.NoEncryption()
        self.key.write_bytes(key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, plain))
        for path in (folder, self.ca, self.cert, self.key):
            path.chmod(0o755 if path == folder else 0o644)

    @property
    def options(self) -> dict[str, str]:
        return {"ssl_ca": str(self.ca), "ssl_cert": str(self.cert), "ssl_key": str(self.key)}
