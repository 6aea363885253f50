"""penstock binlog"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.logs import set_up_logging
from penstock.cli.source_options import Password, Port, source_settings
from penstock.errors import ConfigurationError

FORMATS = ("table", "json", "sql", "csv", "arrow", "parquet")


def binlog(  # noqa: PLR0917 - options are keywords on the command line
    files: Annotated[list[Path] | None, typer.Argument(help="Log files, in their order; - for the input.")] = None,
    host: Annotated[
        str | None,
        typer.Option(help="Read a server's own log instead of files; with files, look up column names there."),
    ] = None,
    port: Port = 3306,
    user: Annotated[
        str,
        typer.Option(
            help="A user with REPLICATION SLAVE and REPLICATION CLIENT; to look up column names, with SELECT on the"
            " tables."
        ),
    ] = "root",
    password: Password = "",
    since: Annotated[
        str | None,
        typer.Option("--since", "--from", help="FILE:OFFSET, a time ('2026-11-15 10:00', -10m, now; UTC) or a GTID."),
    ] = None,
    until: Annotated[str | None, typer.Option(help="FILE:OFFSET or a time; what begins before it is shown.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on at the end of a server's log.")] = False,
    table: Annotated[
        list[str] | None, typer.Option(help="Regular expression for database.table; may be given more than once.")
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Only these columns: id,name.")] = None,
    without: Annotated[
        str | None, typer.Option(help="All columns but these: photo, or shop.product.photo for one table.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many changes.")] = None,
    format_: Annotated[
        str | None,
        typer.Option("--format", help=f"{', '.join(FORMATS)}. Without it, table on a terminal and json elsewhere."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="A file; for csv, arrow and parquet also a folder that gets one file per table."),
    ] = None,
    statements: Annotated[
        bool, typer.Option("--statements", help="Also the statements behind rows, where the log has them; sql always.")
    ] = False,
    passwords: Annotated[
        bool, typer.Option("--passwords", help="Statements about accounts with the passwords in them; else masked.")
    ] = False,
    stats: Annotated[bool, typer.Option("--stats", help="Count instead: tables, largest transactions, rate.")] = False,
    flashback: Annotated[bool, typer.Option("--flashback", help="The SQL that undoes it, last change first.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Only check that files are whole and sound.")] = False,
    no_verify: Annotated[bool, typer.Option("--no-verify", help="Do not check checksums.")] = False,
) -> None:
    """Look into a binary log: rows as a table, JSON, SQL, CSV, Arrow or Parquet; statistics; the way back.

    Examples:

        penstock binlog binlog.000007

        penstock binlog binlog.0000* --table 'shop[.].*' --since '2026-11-15 10:00' --format json | jq .after

        penstock binlog binlog.000007 --stats

        penstock binlog binlog.000007 --table shop.orders --since -10m --flashback > undo.sql

        penstock binlog binlog.000007 --table shop.orders --format parquet --output orders.parquet

        PENSTOCK_PASSWORD=… penstock binlog --host db1 --user penstock --follow
    """
    from penstock.cli.binlog_request import Request  # noqa: PLC0415
    from penstock.cli.binlog_work import run  # noqa: PLC0415 - numba takes a second to load

    if stats + flashback + verify > 1:
        raise ConfigurationError("--stats, --flashback and --verify exclude each other")
    if not files and host is None:
        raise ConfigurationError("name log files, or a server with --host; see penstock binlog --help")
    if host is not None and not host.strip():
        raise ConfigurationError("--host is empty: name a server")
    server = source_settings(host, port, user, password) if host is not None else None
    request = Request(
        files=tuple(files or ()),
        server=server,
        since=since,
        until=until,
        follow=follow,
        tables=tuple(table or ()),
        columns=_names(columns),
        without=_names(without),
        limit=limit,
        format=format_,
        output=output,
        mode="stats" if stats else "flashback" if flashback else "verify" if verify else "show",
        has_checks=not no_verify,
        statements=statements,
        passwords=passwords,
    )
    raise typer.Exit(run(request))


def run_quickly(arguments: list[str]) -> None:
    """Run the command and exit, without what typer loads to check arguments; return when typer must look at them."""
    from penstock.cli.quick_arguments import parse_quickly  # noqa: PLC0415

    keywords = parse_quickly(binlog, arguments)
    if keywords is None:
        return
    set_up_logging(is_verbose=False)
    try:
        binlog(**keywords)
    except typer.Exit as done:
        sys.exit(done.exit_code)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip()) if text else ()
