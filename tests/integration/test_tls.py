"""Encryption of the connection to a source: every mode, with and without certificates, and with wrong ones."""

import ssl
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import AuthenticationError, ConfigurationError, PenstockError
from penstock.source import BinlogStream, connect, current_position
from penstock.testing import DatabaseServer
from tests.support.capture import source_of
from tests.support.certificates import Certificates


def encryption(server: DatabaseServer, **changes: Any) -> str | None:
    """The version of TLS that a session of ours has, and that the log is read with."""
    settings = source_of(server, **changes)
    with closing(connect(settings)) as connection:
        plain: Any = connection._sock
        version = plain.version() if isinstance(plain, ssl.SSLSocket) else None
        with BinlogStream(settings, current_position(connection, settings)) as stream:
            next(iter(stream))
            assert isinstance(stream._socket, ssl.SSLSocket) == (version is not None)
    return version


@pytest.mark.parametrize("kind", ["mariadb", "mariadb11", "mysql9"])
def test_every_mode(private_server: Callable[..., DatabaseServer], tmp_path: Path, kind: str) -> None:
    tmp_path.chmod(0o755)
    for parent in (tmp_path.parent, tmp_path.parent.parent):
        parent.chmod(0o755)
    certificates, others = Certificates(tmp_path / "one", "127.0.0.1"), Certificates(tmp_path / "two", "127.0.0.9")
    server = private_server(kind, options=certificates.options)
    assert encryption(server, tls="disabled") is None
    for mode in ("preferred", "required"):
        assert (encryption(server, tls=mode) or "").startswith("TLSv1")
    for mode in ("verify-ca", "verify-identity"):
        assert (encryption(server, tls=mode, tls_ca=certificates.ca) or "").startswith("TLSv1")
        with pytest.raises(AuthenticationError, match=r"is not trusted, with tls: verify-.* \(.*certificate.*tls_ca"):
            encryption(server, tls=mode, tls_ca=others.ca)
        with pytest.raises(AuthenticationError, match="is not trusted"):
            encryption(server, tls=mode)


@pytest.mark.mysql9
def test_a_certificate_for_another_host(private_server: Callable[..., DatabaseServer], tmp_path: Path) -> None:
    for parent in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        parent.chmod(0o755)
    certificates = Certificates(tmp_path / "one", "127.0.0.9")
    server = private_server("mysql9", options=certificates.options)
    assert encryption(server, tls="verify-ca", tls_ca=certificates.ca)
    with pytest.raises(AuthenticationError, match=r"IP address mismatch.*127\.0\.0\.1"):
        encryption(server, tls="verify-identity", tls_ca=certificates.ca)


def test_a_server_without(mariadb: DatabaseServer) -> None:
    assert encryption(mariadb, tls="preferred") is None
    for mode in ("required", "verify-ca"):
        with pytest.raises(ConfigurationError, match=f"speaks no TLS, and tls: {mode} wants it"):
            encryption(mariadb, tls=mode)


def test_files_that_are_none(mariadb: DatabaseServer, tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match=r"nothing\.pem: no certificates can be read there"):
        encryption(mariadb, tls="verify-ca", tls_ca=tmp_path / "nothing.pem")
