"""What `penstock binlog` does with its options, and its options again for a start without typer.

Typer takes longer to load than a small log takes to read. A test compares PARAMETERS with what typer knows.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.logs import set_up_logging
from penstock.cli.quick_arguments import Parameter, parse_quickly
from penstock.errors import ConfigurationError

if TYPE_CHECKING:
    from penstock.config import SourceSettings

PARAMETERS = (
    Parameter("files", (), Path, is_list=True),
    Parameter("host", ("--host",)),
    Parameter("port", ("--port",), int, default=3306, low=1, high=65535),
    Parameter("user", ("--user",), default="root"),
    Parameter("password", ("--password",), default="", variable="PENSTOCK_PASSWORD"),
    Parameter("since", ("--since", "--from")),
    Parameter("until", ("--until",)),
    Parameter("follow", ("--follow",), bool, default=False),
    Parameter("table", ("--table",), is_list=True),
    Parameter("columns", ("--columns",)),
    Parameter("without", ("--without",)),
    Parameter("limit", ("--limit",), int, low=1),
    Parameter("output", ("--output", "--format")),
    Parameter("to", ("--to",), Path),
    Parameter("statements", ("--statements",), bool, default=False),
    Parameter("passwords", ("--passwords",), bool, default=False),
    Parameter("stats", ("--stats",), bool, default=False),
    Parameter("flashback", ("--flashback",), bool, default=False),
    Parameter("verify", ("--verify",), bool, default=False),
    Parameter("no_verify", ("--no-verify",), bool, default=False),
)


def run_quickly(arguments: list[str]) -> None:
    """Run the command and exit, without what typer loads to check arguments; return when typer must look at them."""
    keywords = parse_quickly(PARAMETERS, arguments)
    if keywords is None:
        return
    set_up_logging(is_verbose=False)
    sys.exit(run_binlog(**keywords))


def run_binlog(
    *,
    files: list[Path] | None,
    host: str | None,
    port: int,
    user: str,
    password: str,
    since: str | None,
    until: str | None,
    follow: bool,
    table: list[str] | None,
    columns: str | None,
    without: str | None,
    limit: int | None,
    output: str | None,
    to: Path | None,
    statements: bool,
    passwords: bool,
    stats: bool,
    flashback: bool,
    verify: bool,
    no_verify: bool,
) -> int:
    """Do what the options say; return the exit code."""
    from penstock.cli.binlog_request import BinlogRequest  # noqa: PLC0415
    from penstock.cli.binlog_work import run  # noqa: PLC0415 - for --help nobody needs it

    if stats + flashback + verify > 1:
        raise ConfigurationError("--stats, --flashback and --verify exclude each other")
    if not files and host is None:
        raise ConfigurationError("name log files, or a server with --host; see penstock binlog --help")
    if host is not None and not host.strip():
        raise ConfigurationError("--host is empty: name a server")
    return run(
        BinlogRequest(
            files=tuple(files or ()),
            server=_settings(host, port, user, password) if host is not None else None,
            since=since,
            until=until,
            follow=follow,
            tables=tuple(table or ()),
            columns=_names(columns),
            without=_names(without),
            limit=limit,
            format=output,
            target=to,
            mode="stats" if stats else "flashback" if flashback else "verify" if verify else "show",
            has_checks=not no_verify,
            statements=statements,
            passwords=passwords,
        )
    )


def _settings(host: str, port: int, user: str, password: str) -> "SourceSettings":
    from penstock.cli.source_options import source_settings  # noqa: PLC0415 - it needs typer, and files do not need it

    return source_settings(host, port, user, password)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip()) if text else ()
