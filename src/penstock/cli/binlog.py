"""penstock binlog, as typer has it: `quick_binlog` runs it without typer where the arguments are plain."""

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.quick_binlog import run_binlog
from penstock.cli.source_options import Password, Port

FORMATS = ("text", "json", "sql", "csv", "arrow", "parquet")


def binlog(  # noqa: PLR0917 - options are keywords on the command line
    files: Annotated[
        list[Path] | None, typer.Argument(help="Binlog files, in their order; - for standard input.")
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            help="Read the binlog of this MySQL or MariaDB server instead of files; with files, look up column names"
            " on this server."
        ),
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
        typer.Option(
            "--since", "--from", help="Begin at FILE:OFFSET, a time ('2026-11-15 10:00', -10m, now; UTC) or a GTID."
        ),
    ] = None,
    until: Annotated[str | None, typer.Option(help="End at FILE:OFFSET or a time: events before it are shown.")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="With --host: keep reading at the end of the binlog.")
    ] = False,
    table: Annotated[
        list[str] | None,
        typer.Option(
            help="Only tables whose database.table matches this regular expression; may be used more than once."
        ),
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Show only these columns: id,name.")] = None,
    without: Annotated[
        str | None, typer.Option(help="Show all columns except these: photo, or shop.product.photo for one table.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after this number of changes.")] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "--format",
            help=f"Output format: {', '.join(FORMATS)}. By default text on a terminal, and json elsewhere.",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(help="Write to this file; csv, arrow and parquet also to a folder, with one file per table."),
    ] = None,
    statements: Annotated[
        bool,
        typer.Option(
            "--statements",
            help="Also show the SQL statements that produced the rows, where the binlog has them; --output sql always"
            " does.",
        ),
    ] = False,
    passwords: Annotated[
        bool,
        typer.Option(
            "--passwords", help="Show the passwords in statements about accounts; by default they are masked."
        ),
    ] = False,
    stats: Annotated[
        bool, typer.Option("--stats", help="Print statistics instead of rows: tables, largest transactions, rate.")
    ] = False,
    flashback: Annotated[
        bool, typer.Option("--flashback", help="Print the SQL that undoes the changes, last change first.")
    ] = False,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Only verify the files: that they are complete, and that checksums are right."),
    ] = False,
    no_verify: Annotated[bool, typer.Option("--no-verify", help="Do not verify checksums.")] = False,
) -> None:
    """Print the changes of a binary log as text, JSON, SQL, CSV, Arrow or Parquet; count, verify or undo them.

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
