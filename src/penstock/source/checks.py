"""What must hold on a source before its log is worth reading, each with its remedy."""

from collections.abc import Iterator, Mapping

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from penstock.config import SourceSettings
from penstock.source.connection import translate_errors
from penstock.source.finding import Finding, Verdict
from penstock.source.versions import check_version

_DAY_S = 86400
_NAMES = (
    "version",
    "log_bin",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_metadata",
    "binlog_order_commits",
    "binlog_checksum",
    "binlog_expire_logs_seconds",
    "expire_logs_days",
    "gtid_mode",
    "encrypt_binlog",
    "binlog_encryption",
    "log_replica_updates",
    "log_slave_updates",
)


_REPLICATED = ("log_replica_updates", "log_slave_updates")


def read_variables(connection: "Connection[Cursor]", settings: SourceSettings) -> dict[str, str]:
    """Read the server variables that capture depends on."""
    with translate_errors(settings), connection.cursor() as cursor:
        cursor.execute(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({', '.join(['%s'] * len(_NAMES))})", _NAMES)
        return {str(name).lower(): str(value) for name, value in cursor.fetchall()}


def check_variables(variables: Mapping[str, str], *, is_standby: bool = False) -> Iterator[Finding]:
    """Yield findings about the server's variables, in the order in which an operator would fix them."""
    version = variables.get("version", "")
    is_mariadb = "mariadb" in version.lower()
    yield check_version(version)
    yield _check_required(variables, "log_bin", "ON", "start the server with --log-bin")
    yield _check_required(
        variables, "binlog_format", "ROW", "SET GLOBAL binlog_format = 'ROW', then reconnect the writers"
    )
    yield _check_required(
        variables, "binlog_row_image", "FULL", "SET GLOBAL binlog_row_image = 'FULL', then reconnect the writers"
    )
    yield _check_recommended(
        variables,
        "binlog_row_metadata",
        "FULL",
        "columns get their names from the statements that made the tables, and a table stops where one is not"
        " understood; SET GLOBAL binlog_row_metadata = 'FULL' (there from MariaDB 10.5 and MySQL 8.0.1 on)",
    )
    if is_standby:
        # Else what it has from the source is not in its own log.
        name = next((name for name in _REPLICATED if name in variables), _REPLICATED[0])
        yield _check_required(variables, name, "ON", f"start the server with --{name.replace('_', '-')}")
    if "binlog_order_commits" in variables:
        # Documents are read back in the trust that engines commit in the order of the log; only MySQL can turn it off.
        yield _check_required(variables, "binlog_order_commits", "ON", "SET GLOBAL binlog_order_commits = ON")
    yield _check_recommended(
        variables,
        "binlog_checksum",
        "CRC32",
        "damage on the way is not noticed; SET GLOBAL binlog_checksum = 'CRC32'",
    )
    if not is_mariadb:
        yield _check_recommended(
            variables,
            "gtid_mode",
            "ON",
            "another server that takes over is found by time only, and changes may come twice; turn GTIDs on",
        )
    yield _check_retention(variables)
    if any(variables.get(name, "OFF").upper() == "ON" for name in ("encrypt_binlog", "binlog_encryption")):
        why = "the server sends it readable; its files are not, as a folder to capture from or with `penstock binlog`"
        yield Finding("encryption of the log", Verdict.OK, "on", why)


def _check_required(variables: Mapping[str, str], name: str, needed: str, remedy: str) -> Finding:
    """Return a failure if a variable does not have the value that capture requires."""
    value = variables[name].upper() if name in variables else "not there"
    is_right = value == needed
    return Finding(name, _fail_if_wrong(is_right), value, "" if is_right else f"needed is {needed}: {remedy}")


def _check_recommended(variables: Mapping[str, str], name: str, wished: str, why: str) -> Finding:
    """Return a warning if a variable does not have the recommended value."""
    value = variables.get(name, "not there").upper()
    is_right = value == wished
    return Finding(name, Verdict.OK if is_right else Verdict.WARN, value, "" if is_right else why)


def retention_s(variables: Mapping[str, str]) -> float:
    """Return how long the server retains a log file; 0 when it never purges."""
    seconds = float(variables.get("binlog_expire_logs_seconds", 0) or 0)
    return seconds or _DAY_S * float(variables.get("expire_logs_days", 0) or 0)


def _check_retention(variables: Mapping[str, str]) -> Finding:
    """Return a warning if the server purges its log within a day."""
    seconds = retention_s(variables)
    if 0 < seconds < _DAY_S:
        why = "a capture that stands still for longer loses changes: SET GLOBAL binlog_expire_logs_seconds = 604800"
        return Finding("retention of the log", Verdict.WARN, f"{seconds / 3600:g} hours", why)
    return Finding("retention of the log", Verdict.OK, f"{seconds / _DAY_S:g} days" if seconds else "without limit")


def _fail_if_wrong(is_right: bool) -> Verdict:
    """Return the verdict OK if the value is right, else FAIL."""
    return Verdict.OK if is_right else Verdict.FAIL
