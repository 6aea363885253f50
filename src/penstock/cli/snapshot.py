"""penstock snapshot"""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from penstock.cli.instance_options import load_instance
from penstock.cli.output import Output, OutputFormat, table_lines
from penstock.cli.source_options import Host, Password, Port, User, build_source_settings
from penstock.config import SourceSettings
from penstock.errors import ConfigurationError
from penstock.model import TableName

ServerOption = Annotated[
    str,
    typer.Option(
        envvar="PENSTOCK_SERVER",
        help="Arrow Flight address of the Penstock server, HOST:PORT; several servers separated by commas.",
    ),
]
DestinationOption = Annotated[str, typer.Option(help="Name of the instance.")]
TokenOption = Annotated[
    str,
    typer.Option(
        envvar="PENSTOCK_TOKEN",
        help="Access token of the server's Arrow Flight port, if it has one.",
        show_default=False,
    ),
]
_SERVER, _DESTINATION = "127.0.0.1:11115", "default"


class _ReadByDefault(TyperGroup):
    """Runs the subcommand `read` when the first argument is not a subcommand: then it is the name of a table."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `read` before the name of a table, and before options."""
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["read", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_ReadByDefault,
    help="Read a table (`penstock snapshot shop.orders`), or control the snapshots with which Spark queries begin.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@app.command()
def read(  # noqa: PLR0917 - options are keywords on the command line
    table: Annotated[str, typer.Argument(help="The table, database.table.", show_default=False)],
    host: Host = "127.0.0.1",
    port: Port = 3306,
    user: User = "root",
    password: Password = "",
    config: Annotated[
        Path | None,
        typer.Option(
            help="Instead of --host: the conf folder or YAML file of a Penstock server, whose source is read.",
            show_default=False,
        ),
    ] = None,
    destination: Annotated[
        str | None, typer.Option(help="With --config: name of the instance, if there are several.", show_default=False)
    ] = None,
    output: Annotated[str, typer.Option(help="Output format: parquet, csv, json (a line per row) or arrow.")] = "json",
    to: Annotated[
        str | None,
        typer.Option(
            help="Write to this file; or to a folder (a name without a suffix, or that ends with a slash), with a file"
            " per chunk, in which an interrupted snapshot resumes.",
            show_default=False,
        ),
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Read only these columns: id,name.", show_default=False)] = None,
    connections: Annotated[int, typer.Option(min=1, max=64, help="How many chunks are read at the same time.")] = 2,
    rows_per_s: Annotated[
        float | None, typer.Option("--rows-per-s", min=1, help="Read at most this many rows per second.")
    ] = None,
    max_view_age: Annotated[
        float,
        typer.Option(
            min=1,
            help="Maximum seconds that one consistent read (read view) is open; a chunk that takes longer is split.",
        ),
    ] = 60,
    chunk_rows: Annotated[
        int, typer.Option(min=1, help="Maximum rows of a chunk, by the server's estimate.")
    ] = 100_000,
    chunk_mib: Annotated[
        int, typer.Option("--chunk-mib", min=1, help="Maximum size of a chunk in MiB, by the server's estimate.")
    ] = 32,
) -> None:
    """Read a table in parallel and without locks, each chunk of it at a known position of the binlog.

    Values are those that the same rows have in the change stream. The last line on stderr says which positions of the
    binlog the snapshot lies between: changes from the first one on, applied to it in their order, bring it up to date.

    Examples:

        PENSTOCK_PASSWORD=… penstock snapshot shop.orders --host db1 --output parquet --to orders/

        penstock snapshot shop.product --output csv > product.csv

        penstock snapshot shop.product --columns id,name | head

        penstock snapshot shop.orders --config /etc/penstock --rows-per-s 20000 --output arrow --to orders.arrow
    """
    # Arrow and kernels take their time to load.
    from penstock.cli.snapshot_files import FORMATS  # noqa: PLC0415
    from penstock.cli.snapshot_run import SnapshotRun  # noqa: PLC0415
    from penstock.snapshot.chunks import ChunkSize  # noqa: PLC0415
    from penstock.snapshot.table_snapshot import SnapshotOptions  # noqa: PLC0415

    if output not in FORMATS:
        raise ConfigurationError(f"--output is one of {', '.join(FORMATS)}, not {output!r}")
    if output == "parquet" and to is None:
        raise ConfigurationError("parquet needs a file or a folder: set it with --to")
    if config is None:
        settings = build_source_settings(host, port, user, password)
    else:
        source = load_instance(config, destination).source
        if not isinstance(source, SourceSettings):
            raise ConfigurationError(f"the source of {config} is a folder of binlog files, which has no tables to read")
        settings = source
    chosen = None if columns is None else tuple(name.strip() for name in columns.split(",") if name.strip())
    size = ChunkSize(chunk_rows, chunk_mib << 20)
    options = SnapshotOptions(connections, size, rows_per_s, chosen, max_view_age_s=max_view_age)
    path, is_folder = (None, False) if to is None else (Path(to), to.endswith("/"))
    SnapshotRun(settings, TableName.parse(table), output, options).run(path, is_folder=is_folder)


_CONTROLS = {
    "status": """Show how far the snapshots of Spark queries are, in rows and percent.

    Examples:

        penstock snapshot status

        penstock snapshot status --server cdc1:11115 --destination shop --output json
    """,
    "pause": """Read no more rows of tables until `resume`, also after a restart; changes are delivered meanwhile.

    Examples:

        penstock snapshot pause --server cdc1:11115
    """,
    "resume": """Continue to read tables after `pause`.

    Examples:

        penstock snapshot resume --server cdc1:11115
    """,
}


def _add_control(action: str, description: str) -> None:
    """Add the command that asks a server for an action on all its snapshots."""

    def control(
        server: ServerOption = _SERVER,
        destination: DestinationOption = _DESTINATION,
        token: TokenOption = "",
        output: OutputFormat = "text",
    ) -> None:
        _control(action, server, destination, token, output)

    app.command(action, help=inspect.cleandoc(description))(control)


for _action, _description in _CONTROLS.items():
    _add_control(_action, _description)


@app.command()
def again(
    table: Annotated[str, typer.Argument(help="The table, database.table.", show_default=False)],
    server: ServerOption = _SERVER,
    destination: DestinationOption = _DESTINATION,
    token: TokenOption = "",
    output: OutputFormat = "text",
) -> None:
    """Request a new snapshot of a table: running queries that began with a snapshot read it again, while they follow
    its changes.

    Examples:

        penstock snapshot again shop.orders --server cdc1:11115
    """
    _control("again", server, destination, token, output, table=str(TableName.parse(table)))


def _control(action: str, server: str, destination: str, token: str, output: OutputFormat, **request: str) -> None:
    """Ask a server for an action on its snapshots, and print how far they are."""
    from penstock.client import FlightClient, ServerAddress  # noqa: PLC0415 - help is quick without it

    with closing(FlightClient(ServerAddress(server, token), destination)) as client:
        report = client.control_snapshots(action, **request)
    Output(output).print_result(report, lambda: list(_report_lines(report)))


def _report_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield how far snapshots are, for people."""
    yield "snapshots are paused: `penstock snapshot resume`" if report["paused"] else "snapshots are not paused"
    titles = ("table", "state", "done", "rows read", "rows (estimate)", "last chunk (UTC)")
    rows = [
        (
            table,
            str(state["state"]),
            f"{state['percent']:.1f} %",
            f"{state['rows_read']:,}",
            f"{state['estimated_rows']:,}",
            f"{datetime.fromtimestamp(state['last'], UTC):%Y-%m-%d %H:%M:%S}" if state["last"] else "",
        )
        for table, state in report["tables"].items()
    ]
    if rows:
        yield from table_lines([titles, *rows])
    else:
        yield "no table was read since this server was started"
