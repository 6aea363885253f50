"""penstock sync"""

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.index_options import Index, IndexApiKey, IndexCa
from penstock.cli.output import Output, OutputFormat
from penstock.cli.signals import handle_stop_signals
from penstock.cli.source_options import Host, Password, Port, User, build_source_settings, parse_address
from penstock.errors import ConfigurationError

if TYPE_CHECKING:
    from penstock.spark.sync_output import DriverStatus, LoadReport
    from penstock.spark.sync_progress import SyncReport

_LOAD_EVERY_S = 5.0


def sync(  # noqa: PLR0917 - one per option
    specs: Annotated[list[Path], typer.Argument(help="The document specs, YAML; several share one stream.")],
    index: Index,
    checkpoint: Annotated[Path, typer.Option(help="Folder that remembers how far the stream is.")],
    server: Annotated[
        str,
        typer.Option(
            help="HOST:PORT of `penstock serve`, or grpc+tls://HOST:PORT; several servers as HOST:PORT,HOST:PORT, or"
            " the ZooKeeper that knows the running one as zookeeper://HOST:PORT."
        ),
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
    api_key: IndexApiKey = None,
    index_ca: IndexCa = None,
    replica: Annotated[
        str | None,
        typer.Option(
            help="Replica of the database to read documents from, as HOST:PORT, with the same user and password. It is"
            " waited for until it has executed what is in the binlog of the database, which needs GTIDs.",
            show_default=False,
        ),
    ] = None,
    zookeeper: Annotated[
        str | None,
        typer.Option(
            help="ZooKeeper that elects one of several processes with the same pipeline, as HOST:PORT,HOST:PORT; the"
            " others stand by and take over.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the pipeline in ZooKeeper, the same for all of its processes. Default: the name of the"
            " checkpoint.",
            show_default=False,
        ),
    ] = None,
    zookeeper_session: Annotated[
        float,
        typer.Option(
            min=1.0, help="Seconds after which another process takes over from one that ZooKeeper hears nothing of."
        ),
    ] = 6.0,
    output: OutputFormat = "text",
) -> None:
    """Keep a search index equal to the database: first load, then every change.

    A new checkpoint begins with a full load; a later run resumes where the last one stopped.

    Examples:

        penstock sync product.yml --index http://127.0.0.1:9200 --checkpoint /var/lib/penstock/product

        penstock sync product.yml --index ./product-index --checkpoint ./product-checkpoint

        penstock sync product.yml --index http://search:9200 --checkpoint /shared/product --zookeeper zk1:2181,zk2:2181
    """
    if name is not None and zookeeper is None:
        raise ConfigurationError("--name is the name of a pipeline in ZooKeeper: say --zookeeper as well")
    from penstock.client import ServerAddress  # noqa: PLC0415 - so does Arrow
    from penstock.spark.index_target import IndexTarget  # noqa: PLC0415
    from penstock.spark.sync_driver import ElectedDriver, SoleDriver, make_candidate  # noqa: PLC0415 - Spark takes seconds
    from penstock.spark.sync_settings import SyncSettings  # noqa: PLC0415

    settings = SyncSettings(
        tuple(specs),
        build_source_settings(host, port, user, password),
        ServerAddress(server, token, tls_ca),
        destination,
        IndexTarget(index, api_key=api_key, ca_certs=index_ca),
        checkpoint.absolute(),
        None if replica is None else build_source_settings(*parse_address(replica, "--replica"), user, password),
    )
    printer = SyncPrinter(Output(output), is_elected=zookeeper is not None)
    if zookeeper is None:
        driver = SoleDriver(settings, printer)
    else:
        candidate = make_candidate(zookeeper, name, settings.checkpoint, zookeeper_session)
        driver = ElectedDriver(settings, candidate, printer)
    handle_stop_signals(driver.stop)
    driver.run()


class SyncPrinter:
    """Prints what happens in a sync job. As JSON, each object says whether this process runs or stands by."""

    def __init__(self, output: Output, *, is_elected: bool) -> None:
        self._output = output
        self._state = "standby" if is_elected else "running"
        self._next_load = time.monotonic() + _LOAD_EVERY_S

    def tell(self, text: str) -> None:
        """Print what happens."""
        self._output.print_event("progress", text, state=self._state, message=text.strip())

    def show_load(self, report: "LoadReport") -> None:
        """Print how far the first load of an index is, from time to time."""
        now = time.monotonic()
        if now >= self._next_load:
            self._next_load = now + _LOAD_EVERY_S
            self._output.print_event("load", str(report), state=self._state, **asdict(report))

    def report(self, report: "SyncReport") -> None:
        """Print how far the stream is."""
        self._output.print_event("progress", str(report), state=self._state, **report.fields())

    def enter(self, status: "DriverStatus") -> None:
        """Print that this process runs from now on, or stands by."""
        self._state = status.state
        self._output.print_event(status.state, str(status), **status.fields())
