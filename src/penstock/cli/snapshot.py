"""penstock snapshot"""

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.instance_options import load_instance
from penstock.cli.source_options import Host, Password, Port, User, build_source_settings
from penstock.config import SourceSettings
from penstock.errors import ConfigurationError
from penstock.model import TableName


def snapshot(  # noqa: PLR0917 - options are keywords on the command line
    table: Annotated[str, typer.Argument(help="The table, database.table.", show_default=False)],
    host: Host = "127.0.0.1",
    port: Port = 3306,
    user: User = "root",
    password: Password = "",
    config: Annotated[
        Path | None,
        typer.Option(
            help="Instead of --host: the conf folder or YAML of a server, for its source.", show_default=False
        ),
    ] = None,
    destination: Annotated[
        str | None, typer.Option(help="With --config: the instance, if there are several.", show_default=False)
    ] = None,
    output: Annotated[str, typer.Option(help="parquet, csv, json (a line per row) or arrow.")] = "json",
    to: Annotated[
        Path | None,
        typer.Option(
            help="Write to this file; or to a folder, with a file per chunk, in which an interrupted snapshot resumes.",
            show_default=False,
        ),
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Only these columns: id,name.", show_default=False)] = None,
    connections: Annotated[int, typer.Option(min=1, max=64, help="How many chunks are read at the same time.")] = 2,
    rows_per_s: Annotated[
        float | None, typer.Option("--rows-per-s", min=1, help="Read no more than so many rows per second.")
    ] = None,
    max_view_age: Annotated[
        float,
        typer.Option(min=1, help="Seconds that a read view is open at most; what takes longer is read in pieces."),
    ] = 60,
    chunk_rows: Annotated[int, typer.Option(min=1, help="Rows of a chunk, at most, by estimate.")] = 100_000,
    chunk_mib: Annotated[int, typer.Option("--chunk-mib", min=1, help="Size of a chunk in MiB, by estimate.")] = 32,
) -> None:
    """Read a table in parallel and without locks, each chunk of it at a known position of the log.

    Values are those that the same rows have in the change stream. The last line on stderr says which positions of the
    log the snapshot lies between: changes from the first one on, applied to it in their order, bring it up to date.

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
        raise ConfigurationError("parquet needs a file or a folder: give it with --to")
    if config is None:
        settings = build_source_settings(host, port, user, password)
    else:
        source = load_instance(config, destination).source
        if not isinstance(source, SourceSettings):
            raise ConfigurationError(f"the source of {config} is a folder of log files, which has no tables to read")
        settings = source
    chosen = None if columns is None else tuple(name.strip() for name in columns.split(",") if name.strip())
    size = ChunkSize(chunk_rows, chunk_mib << 20)
    options = SnapshotOptions(connections, size, rows_per_s, chosen, max_view_age_s=max_view_age)
    SnapshotRun(settings, TableName.parse(table), output, options).run(to)
