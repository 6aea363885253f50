"""The `penstock` command. One module per command; each is imported when it runs, so that help is quick."""

import logging
import signal
import sys
from types import FrameType
from typing import Annotated, NoReturn

import typer
from pydantic import ValidationError

from penstock import __version__
from penstock.cli import binlog, check, config, demo, filter, position, serve, status, sync  # noqa: A004 - named as what people type
from penstock.cli.heap import keep_freed_memory
from penstock.errors import PenstockError

app = typer.Typer(
    help="Change data capture for MySQL and MariaDB: search indexes, queues and lake tables equal to the database.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.command()(binlog.binlog)
app.command()(check.check)
app.command()(demo.demo)
app.command()(serve.serve)
app.command()(status.status)
app.command()(sync.sync)
app.add_typer(config.app, name="config")
app.add_typer(filter.app, name="filter")
app.add_typer(position.app, name="position")


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


def _complain(text: str) -> NoReturn:
    print(f"penstock: {text}", file=sys.stderr)
    sys.exit(1)


def main() -> None:
    """An error that we know is one line and exit code 1; Ctrl-C is 130 and says nothing."""
    signal.signal(signal.SIGTERM, _stop)
    keep_freed_memory()
    # Shells start background jobs with SIGINT ignored; a SIGINT that is sent all the same is meant.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        app()
    except PenstockError as error:
        _complain(str(error))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        _complain(f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}")
    except OSError as error:
        _complain(f"{error.filename or 'the system'}: {error.strerror or error}")
    except KeyboardInterrupt:
        sys.exit(130)
