"""The commands of `penstock`, one module each, which is imported only when its command or the list of all is wanted."""

from collections.abc import Iterable
from importlib import import_module
from typing import Annotated

import typer

from penstock import __version__
from penstock.cli.logs import set_up_logging

COMMANDS = ("binlog", "check", "demo", "serve", "status", "sync", "verify")
"""Commands: a function of the module that has their name."""

GROUPS = ("config", "dlq", "filter", "index", "position", "snapshot")
"""Commands with subcommands: the `app` of the module that has their name."""


def build_app(names: Iterable[str] = (*COMMANDS, *GROUPS)) -> typer.Typer:
    """Make the command line with these commands."""
    app = typer.Typer(
        help="Change data capture for MySQL and MariaDB: search indexes equal to the database; changes for Spark, Arrow"
        " and canal.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
    )
    app.callback()(_options)
    for name in names:
        module = import_module(f"penstock.cli.{name}")
        if name in GROUPS:
            app.add_typer(module.app, name=name)
        else:
            app.command()(getattr(module, name))
    return app


def find_command(arguments: Iterable[str]) -> str | None:
    """Return the command that the arguments name; None when they name none, as `penstock --help` does."""
    words = (word for word in arguments if not word.startswith("-"))
    first = next(words, None)
    return first if first in (*COMMANDS, *GROUPS) else None


def _show_version(wanted: bool) -> None:
    """Print the version and exit."""
    if wanted:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit


def _options(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what happens.")] = False,
    version: Annotated[  # noqa: ARG001 - typer calls it
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    set_up_logging(is_verbose=verbose)
