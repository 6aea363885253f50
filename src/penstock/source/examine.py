"""Checks a source before capture starts, step by step; a step that fails ends the checks that depend on it."""

import ssl
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from penstock.config import SourceSettings
from penstock.errors import PenstockError
from penstock.source.checks import check_variables, read_variables
from penstock.source.connection import connect, translate_errors
from penstock.source.finding import Finding, Verdict
from penstock.source.preflight import current_position, oldest_position
from penstock.source.stream import BinlogStream
from penstock.source.xa_commits import Rows, XaCommits, find_missing_privilege


def examine_server(settings: SourceSettings, *, is_standby: bool = False) -> Iterator[Finding]:
    """Yield findings about a server; it ends with the first problem after which nothing more can be found out."""
    try:
        connection = connect(settings)
    except PenstockError as error:
        yield Finding("login", Verdict.FAIL, "refused", str(error))
        return
    with closing(connection):
        yield Finding("login", Verdict.OK, f"{settings.user} at {settings.address}")
        yield _check_encryption(connection)
        variables = read_variables(connection, settings)
        yield from check_variables(variables, is_standby=is_standby)
        if variables.get("log_bin", "").upper() == "ON":
            yield _find_log_range(connection, settings)
        yield _check_select_grant(connection, settings)
        if "mariadb" in variables.get("version", "").lower():
            yield from _check_process_grant(connection, settings)


def _check_encryption(connection: Any) -> Finding:
    """Return a finding that says whether the connection is encrypted."""
    plain = connection._sock  # noqa: SLF001 - PyMySQL does not say otherwise
    if isinstance(plain, ssl.SSLSocket):
        return Finding("encryption", Verdict.OK, plain.version() or "on")
    return Finding("encryption", Verdict.WARN, "off", "whoever is on the way can read the changes; see `tls`")


def _find_log_range(connection: Any, settings: SourceSettings) -> Finding:
    """Return a finding that says which part of the log can be read, if any."""
    try:
        first, end = oldest_position(connection, settings), current_position(connection, settings)
        with BinlogStream(settings, end) as stream:
            next(iter(stream), None)
    except PenstockError as error:
        return Finding("reading the log", Verdict.FAIL, "refused", str(error))
    gtids = f", after {end.gtids.text}" if end.gtids is not None and end.gtids.ranges else ""
    return Finding("reading the log", Verdict.OK, f"{first} to {end}{gtids}")


def _check_select_grant(connection: Any, settings: SourceSettings) -> Finding:
    """Return a finding that says whether the user may read all tables."""
    with translate_errors(settings), connection.cursor() as cursor:
        cursor.execute("SHOW GRANTS")
        grants = [str(row[0]).upper() for row in cursor.fetchall()]
    everywhere = [grant.split(" ON ")[0] for grant in grants if " ON *.* " in grant]
    if any("ALL PRIVILEGES" in grant or "SELECT" in grant for grant in everywhere):
        return Finding("SELECT", Verdict.OK, "granted on all tables")
    remedy = f"tables are described and loaded by it: GRANT SELECT ON *.* TO '{settings.user}'@'…'"
    return Finding("SELECT", Verdict.WARN, "not granted on all tables", remedy)


def _check_process_grant(connection: Any, settings: SourceSettings) -> Iterator[Finding]:
    """Yield a finding that says whether the user may see XA COMMIT statements, of a MariaDB server that has had any."""

    def query(sql: str) -> Rows:
        with translate_errors(settings), connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    if not XaCommits(query).count_started():
        return
    if remedy := find_missing_privilege(query):
        why = f"a snapshot or `penstock sync` may miss rows of an XA transaction that is being committed: {remedy}"
        yield Finding("PROCESS", Verdict.WARN, "not granted", why)
    else:
        yield Finding("PROCESS", Verdict.OK, "granted")
