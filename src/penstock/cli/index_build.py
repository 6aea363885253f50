"""penstock index build and rollback"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.index_options import Index, IndexApiKey, IndexCa
from penstock.cli.output import Output, OutputFormat
from penstock.cli.progress import ProgressLine
from penstock.cli.signals import handle_stop_signals
from penstock.cli.source_options import Host, Password, Port, User, build_source_settings, parse_address
from penstock.cli.sync import SyncPrinter
from penstock.errors import IndexDifferentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.spark.index_build import IndexBuild
    from penstock.spark.sync_output import LoadReport
    from penstock.spark.sync_progress import SyncReport

EXIT_DIFFERENT, EXIT_INTERRUPTED = 3, 130

Spec = Annotated[Path, typer.Argument(help="The document spec, a YAML file with an `alias`.", show_default=False)]
Checkpoint = Annotated[
    Path,
    typer.Option(
        help="Checkpoint of the `penstock sync` that keeps this index. The build has its own beside it, and sync takes"
        " over from there.",
        show_default=False,
    ),
]
Server = Annotated[
    str,
    typer.Option(
        help="HOST:PORT of `penstock serve`, or grpc+tls://HOST:PORT; several servers as HOST:PORT,HOST:PORT, or the"
        " ZooKeeper that knows the running one as zookeeper://HOST:PORT."
    ),
]
Token = Annotated[str, typer.Option(envvar="PENSTOCK_TOKEN", show_envvar=True, help="Token that the server accepts.")]
TlsCa = Annotated[str, typer.Option(help="File with certificates to trust; makes the connection TLS.")]
Destination = Annotated[str, typer.Option(help="Instance on that server.")]
Replica = Annotated[
    str | None,
    typer.Option(help="Replica of the database to read documents from, as HOST:PORT.", show_default=False),
]


def build(  # noqa: PLR0917 - one per option
    spec: Spec,
    index: Index,
    checkpoint: Checkpoint,
    restart: Annotated[
        bool, typer.Option("--restart", help="Drop an unfinished build, and begin a new one instead of resuming it.")
    ] = False,
    server: Server = "127.0.0.1:11115",
    token: Token = "",
    tls_ca: TlsCa = "",
    destination: Destination = "default",
    host: Host = "127.0.0.1",
    port: Port = 3306,
    user: User = "root",
    password: Password = "",
    api_key: IndexApiKey = None,
    index_ca: IndexCa = None,
    replica: Replica = None,
    output: OutputFormat = "text",
) -> None:
    """Build a new index beside the one that readers search, and move the alias to it when it equals the database.

    Readers search by the `alias` of the spec. Until the new index is loaded, follows the changes and is proved to have
    the same documents as the database, they find the old one, which `penstock sync` keeps up to date; then the alias
    is moved in one step. The running `penstock sync` takes over by itself if it has the same spec, else when it is
    started with it; until then, this command follows the changes. The old index stays, for `penstock index rollback`.

    Use it when the spec or the mapping has changed, or to begin with a fast load. Whatever is interrupted, the same
    command resumes. The exit code is 3 when the index is not equal to the database: then the alias was not moved.

    Examples:

        penstock index build product.yml --index http://search:9200 --checkpoint /var/lib/penstock/product

        penstock index build product.yml --index http://search:9200 --checkpoint /var/lib/penstock/product --restart
    """
    address = (server, token, tls_ca, destination)
    work = _open_build(
        *(spec, index, checkpoint, address, (host, port, user, password), (api_key, index_ca), replica, output)
    )
    _finish(work, lambda: work.run(restart=restart))


def rollback(  # noqa: PLR0917 - one per option
    spec: Spec,
    index: Index,
    checkpoint: Checkpoint,
    server: Server = "127.0.0.1:11115",
    token: Token = "",
    tls_ca: TlsCa = "",
    destination: Destination = "default",
    host: Host = "127.0.0.1",
    port: Port = 3306,
    user: User = "root",
    password: Password = "",
    api_key: IndexApiKey = None,
    index_ca: IndexCa = None,
    replica: Replica = None,
    output: OutputFormat = "text",
) -> None:
    """Move the alias back to the index from before the last build, as soon as that has caught up with the log.

    The changes since the build are applied to it first, so that readers do not see old documents; the log must still
    have them. Name the spec with which that index was filled. `penstock sync` then takes over, as after a build.

    Examples:

        penstock index rollback product.yml --index http://search:9200 --checkpoint /var/lib/penstock/product
    """
    address = (server, token, tls_ca, destination)
    work = _open_build(
        *(spec, index, checkpoint, address, (host, port, user, password), (api_key, index_ca), replica, output)
    )
    _finish(work, work.roll_back)


def _open_build(
    spec: Path,
    index: str,
    checkpoint: Path,
    address: tuple[str, str, str, str],
    source: tuple[str, int, str, str],
    access: tuple[str | None, str | None],
    replica: str | None,
    output: OutputFormat,
) -> "IndexBuild":
    """Return the build that options describe."""
    from penstock.client import ServerAddress  # noqa: PLC0415 - Arrow and Spark take seconds to load
    from penstock.spark.index_build import IndexBuild  # noqa: PLC0415
    from penstock.spark.index_target import IndexTarget  # noqa: PLC0415
    from penstock.spark.sync_settings import SyncSettings  # noqa: PLC0415

    *server, destination = address
    api_key, ca_certs = access
    settings = SyncSettings(
        (spec,),
        build_source_settings(*source),
        ServerAddress(*server),
        destination,
        IndexTarget(index, api_key=api_key, ca_certs=ca_certs),
        checkpoint.absolute(),
        None if replica is None else build_source_settings(*parse_address(replica, "--replica"), *source[2:]),
    )
    return IndexBuild(settings, BuildPrinter(Output(output)))


def _finish(work: "IndexBuild", run: "Callable[[], None]") -> None:
    """Run a build until it is done or told to stop, and end with the exit code for it."""
    handle_stop_signals(work.stop)
    try:
        run()
    except IndexDifferentError as error:
        typer.echo(f"penstock: {error}", err=True)
        raise typer.Exit(EXIT_DIFFERENT) from None
    if work.is_interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)


class BuildPrinter(SyncPrinter):
    """Prints the progress of a build; on a terminal, the load is one line that changes."""

    def __init__(self, output: Output) -> None:
        super().__init__(output, is_elected=False)
        self._line = ProgressLine(shares_screen=True)

    def show_load(self, report: "LoadReport") -> None:
        """Show how far the load is."""
        if self._line.is_shown:
            self._line.show_text(str(report).strip())
        else:
            super().show_load(report)

    def report(self, report: "SyncReport") -> None:
        """Print how far the stream is."""
        self._line.clear()
        super().report(report)

    def tell(self, text: str) -> None:
        """Print what happens."""
        self._line.clear()
        super().tell(text)
