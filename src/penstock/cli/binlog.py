"""penstock binlog, as typer has it: `quick_binlog` runs it without typer where the arguments are plain."""

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.quick_binlog import run_binlog
from penstock.cli.source_options import Password, Port

FORMATS = ("text", "json", "sql", "csv", "arrow", "parquet")


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
    follow: Annotated[bool, typer.Option("--follow", help="Keep reading at the end of a server's log.")] = False,
    table: Annotated[
        list[str] | None, typer.Option(help="Regular expression for database.table; may be given more than once.")
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Only these columns: id,name.")] = None,
    without: Annotated[
        str | None, typer.Option(help="All columns but these: photo, or shop.product.photo for one table.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many changes.")] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "--format",
            help=f"{', '.join(FORMATS)}. Without it, text on a terminal and json elsewhere.",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(help="Write to this file; csv, arrow and parquet also to a folder, with one file per table."),
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
    """Look into a binary log: rows as text, JSON, SQL, CSV, Arrow or Parquet; statistics; the way back.

    Examples:

        penstock binlog binlog.000007

        penstock binlog binlog.0000* --table 'shop[.].*' --since '2026-11-15 10:00' --output json | jq .after

        penstock binlog binlog.000007 --stats

        penstock binlog binlog.000007 --table shop.orders --since -10m --flashback > undo.sql

        penstock binlog binlog.000007 --table shop.orders --output parquet --to orders.parquet

        PENSTOCK_PASSWORD=… penstock binlog --host db1 --user penstock --follow
    """
    raise typer.Exit(
        run_binlog(
            files=files,
            host=host,
            port=port,
            user=user,
            password=password,
            since=since,
            until=until,
            follow=follow,
            table=table,
            columns=columns,
            without=without,
            limit=limit,
            output=output,
            to=to,
            statements=statements,
            passwords=passwords,
            stats=stats,
            flashback=flashback,
            verify=verify,
            no_verify=no_verify,
        )
    )
