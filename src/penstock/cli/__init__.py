"""The `penstock` command. One module per command; each is imported when it runs, so that help is quick."""

import logging
import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from penstock import __version__
from penstock.cli import demo, serve, sync
from penstock.errors import PenstockError

app = typer.Typer(
    help="Change data capture for MySQL and MariaDB: search indexes, queues and lake tables equal to the database.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.command()(demo.demo)
app.command()(serve.serve)
app.command()(sync.sync)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit


@app.callback()
def options(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what happens.")] = False,
    version: Annotated[  # noqa: ARG001 - typer calls it
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    logging.getLogger("py4j").setLevel(logging.WARNING)


def _stop(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)


def main() -> None:
    """An error that we know is one line and exit code 1; Ctrl-C is 130 and says nothing."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        app()
    except PenstockError as error:
        print(f"penstock: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
