"""Connections to a source. PyMySQL does handshake, TLS and authentication; this module turns its errors into
Penstock's."""

import ssl
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from penstock.config import SourceSettings
from penstock.errors import AuthenticationError, PenstockError, ProtocolError, SourceConnectionError
from penstock.source.tls import tls_options, translate_tls_error, trust_all_context

_ANSWER_S = 120  # for one statement: a peer that vanished must not be waited for
_UNPRIVILEGED = {1044, 1142, 1227}
_REFUSED = {1045, 1130, 1251, 1698, 1820, 2059, 3118, 3159}
_LOST = {2003, 2006, 2013, 1040, 1053, 1077, 1079, 1080, 1152, 1158, 1159, 1160, 1161, 1203, 1927, 3169, 4031}
_LOCKED = {1205, 1213}
_INTERRUPTED = {1317, 1412, 1969, 3024}  # killed, met by DDL, or too long for the server's limit


class _SourceConnection(Connection):  # type: ignore[reportMissingTypeArgument] - it has one for pyright only
    """A connection of PyMySQL that does not read certificate files when encryption is optional and none are
    configured."""

    def _create_ssl_ctx(self, sslp: object) -> ssl.SSLContext:
        """Return the TLS context of the connection; PyMySQL calls this."""
        return sslp if isinstance(sslp, ssl.SSLContext) else trust_all_context()


def connect(settings: SourceSettings, **changes: Any) -> "Connection[Cursor]":
    """Open a connection in autocommit mode whose session uses UTC and utf8mb4."""
    with translate_errors(settings):
        options: dict[str, Any] = {
            "host": settings.host,
            "port": settings.port,
            "user": settings.user,
            "password": settings.password.get_secret_value(),
            "charset": "utf8mb4",
            "autocommit": True,
            "connect_timeout": settings.connect_timeout_s,
            "read_timeout": _ANSWER_S,
            "write_timeout": _ANSWER_S,
            "ssl_disabled": settings.tls == "disabled",
            "ssl": tls_options(settings),
            "init_command": "SET time_zone = '+00:00'",
        }
        return _SourceConnection(**(options | changes))


@contextmanager
def translate_errors(settings: SourceSettings) -> Generator[None, None, None]:
    """Raise errors of PyMySQL as Penstock's errors, in a `with` block that uses a connection."""
    try:
        yield
    except pymysql.err.MySQLError as error:
        raise translate_error(error, settings) from error
    except (OSError, EOFError) as error:
        raise SourceConnectionError(f"the connection to {settings.address} broke: {error}") from error


def translate_server_error(code: int, text: str, settings: SourceSettings) -> PenstockError:
    """Return the Penstock error for an error packet of the server."""
    return translate_error(pymysql.err.OperationalError(code, text), settings)


def translate_error(error: pymysql.err.MySQLError, settings: SourceSettings) -> PenstockError:  # noqa: PLR0911 - by its code
    """Return the Penstock error for an error of PyMySQL, by its code."""
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    text = str(error.args[1] if len(error.args) > 1 else error)
    if (refused := translate_tls_error(code, text, settings)) is not None:
        return refused
    if code in _UNPRIVILEGED:
        return AuthenticationError(
            f"user '{settings.user}' may not do this on {settings.address} (server says: {text}):"
            f" GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.* TO '{settings.user}'@'…'"
        )
    if code in _REFUSED:
        return AuthenticationError(
            f"{settings.address} refused user '{settings.user}' (server says: {text}): check user and password"
        )
    if code == 2003:
        return SourceConnectionError(
            f"cannot reach a database at {settings.address}: is it running, and are host and port right? ({text})"
        )
    if code in _LOCKED:
        return SourceConnectionError(f"{settings.address} let a statement wait too long for a lock: {text}")
    if code in _INTERRUPTED:
        return SourceConnectionError(f"{settings.address} ended a statement: {text}")
    if code in _LOST or code == 0 or isinstance(error, pymysql.err.InterfaceError):
        return SourceConnectionError(f"the connection to {settings.address} broke: {text}")
    return ProtocolError(f"{settings.address} answered with error {code}: {text}")
