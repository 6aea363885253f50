"""Encryption of the connection to a source: every mode, on servers with and without it, and with the wrong papers."""

import ssl
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from penstock.errors import AuthenticationError, ConfigurationError, PenstockError
from penstock.source import BinlogStream, connect, current_position
from penstock.testing import DatabaseServer
from tests.capture import source_of

Key = rsa.RSAPrivateKey


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


class Papers:
    """An authority, and a certificate for an address, as files."""

    def __init__(self, folder: Path, address: str) -> None:
        folder.mkdir()
        authority, own = _key(), _key()
        self.ca, self.cert, self.key = folder / "ca.pem", folder / "cert.pem", folder / "key.pem"
        self.ca.write_bytes(_signed("authority", authority, ("authority", authority)).public_bytes(_PEM))
        self.cert.write_bytes(_signed("server", own, ("authority", authority), address).public_bytes(_PEM))
        plain = serialization.NoEncryption()
        self.key.write_bytes(own.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, plain))
        for path in (folder, self.ca, self.cert, self.key):
            path.chmod(0o755 if path == folder else 0o644)

    @property
    def options(self) -> dict[str, str]:
        return {"ssl_ca": str(self.ca), "ssl_cert": str(self.cert), "ssl_key": str(self.key)}


_PEM = serialization.Encoding.PEM


def encryption(server: DatabaseServer, **changes: Any) -> str | None:
    """The version of TLS that a session of ours has, and that the log is read with."""
    settings = source_of(server, **changes)
    with closing(connect(settings)) as connection:
        plain: Any = connection._sock
        found = plain.version() if isinstance(plain, ssl.SSLSocket) else None
        with BinlogStream(settings, current_position(connection, settings)) as stream:
            next(iter(stream))
            assert isinstance(stream._socket, ssl.SSLSocket) == (found is not None)
    return found


@pytest.mark.parametrize("kind", ["mariadb", "mysql9"])
def test_every_mode(private_server: Callable[..., DatabaseServer], tmp_path: Path, kind: str) -> None:
    tmp_path.chmod(0o755)
    for parent in (tmp_path.parent, tmp_path.parent.parent):
        parent.chmod(0o755)
    papers, others = Papers(tmp_path / "one", "127.0.0.1"), Papers(tmp_path / "two", "127.0.0.9")
    server = private_server(kind, options=papers.options)
    assert encryption(server, tls="disabled") is None
    for mode in ("preferred", "required"):
        assert (encryption(server, tls=mode) or "").startswith("TLSv1")
    for mode in ("verify-ca", "verify-identity"):
        assert (encryption(server, tls=mode, tls_ca=papers.ca) or "").startswith("TLSv1")
        with pytest.raises(AuthenticationError, match=r"is not trusted, with tls: verify-.* \(.*certificate.*tls_ca"):
            encryption(server, tls=mode, tls_ca=others.ca)
        with pytest.raises(AuthenticationError, match="is not trusted"):
            encryption(server, tls=mode)


@pytest.mark.mysql9
def test_a_certificate_for_another_host(private_server: Callable[..., DatabaseServer], tmp_path: Path) -> None:
    for parent in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        parent.chmod(0o755)
    papers = Papers(tmp_path / "one", "127.0.0.9")
    server = private_server("mysql9", options=papers.options)
    assert encryption(server, tls="verify-ca", tls_ca=papers.ca)
    with pytest.raises(AuthenticationError, match=r"IP address mismatch.*127\.0\.0\.1"):
        encryption(server, tls="verify-identity", tls_ca=papers.ca)


def test_a_server_without(mariadb: DatabaseServer) -> None:
    assert encryption(mariadb, tls="preferred") is None
    for mode in ("required", "verify-ca"):
        with pytest.raises(ConfigurationError, match=f"speaks no TLS, and tls: {mode} wants it"):
            encryption(mariadb, tls=mode)


def test_files_that_are_none(mariadb: DatabaseServer, tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match=r"nothing\.pem: no certificates can be read there"):
        encryption(mariadb, tls="verify-ca", tls_ca=tmp_path / "nothing.pem")
