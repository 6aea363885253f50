"""What `penstock binlog` does with its options, and its options again for a start without typer.

Typer takes longer to load than a small log takes to read. A test compares PARAMETERS with what typer knows.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.logs import set_up_logging
from penstock.cli.quick_arguments import CommandParameter, parse_quickly
from penstock.errors import ConfigurationError

if TYPE_CHECKING:
    from penstock.config import SourceSettings

PARAMETERS = (
    CommandParameter("files", (), Path, is_list=True),
    CommandParameter("host", ("--host",)),
    CommandParameter("port", ("--port",), int, default=3306, low=1, high=65535),
    CommandParameter("user", ("--user",), default="root"),
    CommandParameter("password", ("--password",), default="", variable="PENSTOCK_PASSWORD"),
    CommandParameter("since", ("--since", "--from")),
    CommandParameter("until", ("--until",)),
    CommandParameter("follow", ("--follow",), bool, default=False),
    CommandParameter("table", ("--table",), is_list=True),
    CommandParameter("columns", ("--columns",)),
    CommandParameter("without", ("--without",)),
    CommandParameter("limit", ("--limit",), int, low=1),
    CommandParameter("output", ("--output", "--format")),
    CommandParameter("to", ("--to",), Path),
    CommandParameter("statements", ("--statements",), bool, default=False),
    CommandParameter("passwords", ("--passwords",), bool, default=False),
    CommandParameter("stats", ("--stats",), bool, default=False),
    CommandParameter("flashback", ("--flashback",), bool, default=False),
    CommandParameter("verify", ("--verify",), bool, default=False),
    CommandParameter("no_verify", ("--no-verify",), bool, default=False),
)


def run_quickly(arguments: list[str]) -> None:
    """Run the command and exit, without what typer loads to check arguments; return when typer must parse them."""
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
    """Run `penstock binlog` with these options, and return the exit code."""
    from penstock.cli.binlog_request import BinlogRequest  # noqa: PLC0415
    from penstock.cli.binlog_work import run_request  # noqa: PLC0415 - for --help nobody needs it

    if stats + flashback + verify > 1:
        raise ConfigurationError("--stats, --flashback and --verify exclude each other")
    if not files and host is None:
        raise ConfigurationError("name log files, or a server with --host; see penstock binlog --help")
    if host is not None and not host.strip():
        raise ConfigurationError("--host is empty: name a server")
    return run_request(
        BinlogRequest(
            files=tuple(files or ()),
            server=_build_source_settings(host, port, user, password) if host is not None else None,
            since=since,
            until=until,
            follow=follow,
            tables=tuple(table or ()),
            columns=_split_names(columns),
            without=_split_names(without),
            limit=limit,
            format=output,
            target=to,
            mode="stats" if stats else "flashback" if flashback else "verify" if verify else "show",
            has_checks=not no_verify,
            statements=statements,
            passwords=passwords,
        )
    )


def _build_source_settings(host: str, port: int, user: str, password: str) -> "SourceSettings":
    """Return the settings of the source that the options name."""
    from penstock.cli.source_options import build_source_settings  # noqa: PLC0415 - it needs typer, and files do not need it

    return build_source_settings(host, port, user, password)


def _split_names(text: str | None) -> tuple[str, ...]:
    """Return the names in a list with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip()) if text else ()
