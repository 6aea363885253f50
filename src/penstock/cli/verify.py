"""penstock verify"""

import threading
import time
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.index_verify import EXIT_DIFFERENT, EXIT_UNSETTLED, VerifyPrinter, compare_regularly
from penstock.cli.output import Output, OutputFormat
from penstock.cli.signals import handle_stop_signals
from penstock.cli.source_options import Host, Password, Port, User, build_source_settings
from penstock.model import TableName

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.client import ServerAddress
    from penstock.mirror.row_check import MirrorProgress, RowDifference
    from penstock.mirror.table_verify import MirrorResult


def verify(  # noqa: PLR0917 - one per option
    table: Annotated[str, typer.Argument(help="The table, database.table.", show_default=False)],
    mirror: Annotated[
        str,
        typer.Option(
            help="What is compared with the table: a folder of Parquet files, the folder of a Delta table, or a table"
            " of another server, mysql://USER@HOST:PORT/DATABASE.TABLE.",
            show_default=False,
        ),
    ],
    mirror_password: Annotated[
        str,
        typer.Option(
            envvar="PENSTOCK_MIRROR_PASSWORD",
            show_envvar=True,
            show_default=False,
            help="Password of the mirror's database user; better set in the environment.",
        ),
    ] = "",
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Checkpoint of the Spark query that keeps the mirror. With it, and the server in --server, changes on"
            " their way to the mirror are told from differences with certainty.",
            show_default=False,
        ),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Compare only these columns, and the key: id,name.", show_default=False)
    ] = None,
    key_range: Annotated[
        str | None,
        typer.Option(
            "--range",
            help="Compare only rows whose key begins with an integer in this range, such as 1000..1999 or 1000..",
            show_default=False,
        ),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(
            help="Compare only this share of the rows, such as 1% or 0.01: the same rows each time, chosen by a hash"
            " of their keys.",
            show_default=False,
        ),
    ] = None,
    rows_per_s: Annotated[
        float | None, typer.Option("--rows-per-s", min=1, help="Read at most this many rows per second from each side.")
    ] = None,
    every: Annotated[
        float | None,
        typer.Option(
            min=1, help="Compare again and again, with this many seconds from one comparison to the next, until Ctrl-C."
        ),
    ] = None,
    settle: Annotated[
        float,
        typer.Option(min=0.0, help="Without --checkpoint: seconds after which a change must have reached the mirror."),
    ] = 10.0,
    wait: Annotated[
        float, typer.Option(min=0.0, help="With --checkpoint: seconds to wait for the query to apply a change.")
    ] = 60.0,
    server: Annotated[
        str, typer.Option(help="With --checkpoint: HOST:PORT of `penstock serve`, as the query has it.")
    ] = "127.0.0.1:11115",
    token: Annotated[
        str, typer.Option(envvar="PENSTOCK_TOKEN", show_envvar=True, help="Token that the server accepts.")
    ] = "",
    tls_ca: Annotated[str, typer.Option(help="File with certificates to trust; makes the connection TLS.")] = "",
    destination: Annotated[str, typer.Option(help="Instance on that server.")] = "default",
    host: Host = "127.0.0.1",
    port: Port = 3306,
    user: User = "root",
    password: Password = "",
    output: OutputFormat = "text",
) -> None:
    """Compare every row of a table with its mirror, while both change, and say which are missing, stale or extra.

    A mirror is a copy that a Penstock stream keeps: Parquet files, a Delta table, or a table of another MySQL or
    MariaDB. A row that is different because its change is on its way to the mirror is looked at again until that has
    arrived. The exit code is 0 when they are equal, 3 when they differ, and 4 when some rows could not be settled:
    they changed all the time, or nothing keeps the mirror. Columns of the mirror that begin with `_` are ignored.

    Examples:

        penstock verify shop.orders --host db1 --user penstock --mirror /data/orders

        penstock verify shop.orders --mirror /lake/orders --checkpoint /lake/orders.chk --server cdc1:11115

        PENSTOCK_MIRROR_PASSWORD=… penstock verify shop.orders --mirror mysql://penstock@db2:3306/copy.orders

        penstock verify shop.orders --mirror /data/orders --sample 1% --output json
    """
    from penstock.client import ServerAddress  # noqa: PLC0415 - Arrow and kernels take a second to load
    from penstock.mirror.comparison import RowComparison  # noqa: PLC0415
    from penstock.mirror.row_check import RowCheck  # noqa: PLC0415
    from penstock.mirror.selection import RowSelection  # noqa: PLC0415
    from penstock.mirror.settle_time import MirrorSettleTime  # noqa: PLC0415
    from penstock.mirror.table_verify import TableVerifier  # noqa: PLC0415
    from penstock.mirror.target import open_mirror, open_source  # noqa: PLC0415
    from penstock.model.integer_range import IntegerRange  # noqa: PLC0415
    from penstock.render.key_sample import parse_share  # noqa: PLC0415
    from penstock.snapshot.table_snapshot import SnapshotOptions  # noqa: PLC0415

    name, source_settings = TableName.parse(table), build_source_settings(host, port, user, password)
    keys = None if key_range is None else IntegerRange.parse(key_range)
    share = None if sample is None else parse_share(sample)
    chosen = None if columns is None else tuple(part.strip() for part in columns.split(",") if part.strip())
    stopped = threading.Event()
    handle_stop_signals(stopped.set)
    printer = MirrorPrinter(Output(output))

    def compare() -> int:
        """Compare once, with the table as it is now, and return the exit code."""
        with ExitStack() as opened:
            target = opened.enter_context(closing(open_mirror(mirror, mirror_password)))
            options = SnapshotOptions(connections=1, rows_per_s=rows_per_s)
            source = opened.enter_context(closing(open_source(source_settings, name, target, options, chosen)))
            comparison = RowComparison.of(
                source.table,
                source.schema,
                target.schema,
                json_columns=target.json_columns,
                chosen=chosen,
            )
            bounds = None if share is None else source.find_bounds()
            selection = RowSelection.of_table(source.table, keys, share, bounds)
            if checkpoint is None:
                progress: MirrorProgress = MirrorSettleTime(settle, stopped)
            else:
                address = ServerAddress(server, token, tls_ca)
                progress = _open_stream_progress(opened, address, destination, checkpoint, name, wait, stopped)
            verifier = TableVerifier(
                *(comparison, source, target, RowCheck(comparison, source, target, progress, pause=stopped.wait)),
                stopped,
                selection=selection,
                rows_per_s=rows_per_s,
                progress=printer.show_rows,
                on_difference=printer.print_row,
            )
            printer.begin()
            result = verifier.run()
            if stopped.is_set():
                return 0
            printer.print_mirror_result(result, str(name))
            return 0 if result.is_equal else EXIT_DIFFERENT if any(result.counts.values()) else EXIT_UNSETTLED

    code = compare() if every is None else compare_regularly(compare, every, printer, stopped)
    raise typer.Exit(130 if stopped.is_set() and every is None else code)


def _open_stream_progress(
    opened: ExitStack,
    address: "ServerAddress",
    destination: str,
    checkpoint: Path,
    table: TableName,
    wait_s: float,
    stopped: threading.Event,
) -> "MirrorProgress":
    """Return what knows by the checkpoint of a Spark query how far a mirror is."""
    from penstock.client import FlightClient  # noqa: PLC0415 - help is quick without it
    from penstock.spark.mirror_progress import QueryProgress  # noqa: PLC0415

    client = opened.enter_context(closing(FlightClient(address, destination)))
    return QueryProgress(client, checkpoint, table, timeout_s=wait_s, stopped=stopped)


class MirrorPrinter(VerifyPrinter):
    """Prints what the comparison of a mirror finds, as soon as it is certain."""

    def show_rows(self, done: int, total: int) -> None:
        """Show how far the comparison is, on a terminal."""
        self._progress.show_rows(done, total, time.monotonic() - self._began)

    def print_row(self, difference: "RowDifference") -> None:
        """Print a row that differs."""
        self._print_line(str(difference), asdict(difference))

    def print_mirror_result(self, result: "MirrorResult", table: str) -> None:
        """Print the result."""
        self._progress.clear()
        seconds = time.monotonic() - self._began
        summary = {
            "equal": result.is_equal, "rows": result.rows, "mirrored": result.mirrored, **result.counts,
            "unsettled": result.unsettled, "unsettled_reason": result.unsettled_reason, "checked": result.checked,
            "share": result.share, "seconds": round(seconds, 3),
        }  # fmt: skip
        self._output.print_event("result", "\n".join(_result_lines(result, table, seconds)), **summary)


def _result_lines(result: "MirrorResult", table: str, seconds: float) -> "Iterator[str]":
    """Yield the result as text."""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in result.counts.items())
    verdict = "equal" if result.is_equal else "NOT equal" if any(result.counts.values()) else "not proved to be equal"
    yield (
        f"{verdict}: {result.rows:,} rows of {table}, {result.mirrored:,} of the mirror ({kinds};"
        f" {result.checked:,} read again) in {seconds:,.1f} s"
    )
    if result.share < 1:
        yield f"a sample of {100 * result.share:g} % was compared"
    if result.unsettled:
        yield f"{result.unsettled:,} rows could not be settled: {result.unsettled_reason}"
