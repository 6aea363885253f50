"""penstock demo"""

from typing import Annotated

import typer

from penstock.cli.output import Output, OutputFormat
from penstock.errors import ConfigurationError


def demo(
    once: Annotated[
        bool,
        typer.Option("--once", help="Make a change of each kind, print how long each took to be searchable, and exit."),
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0 takes a free one.")] = 8420,
    output: OutputFormat = "text",
) -> None:
    """Run a shop, its search index, and a page that shows how fast one follows the other.

    Starts a private MariaDB, captures its log, and runs Spark and an index on disk, all on this machine and only
    for this run. The page searches orders, changes them, and draws the pipeline with its numbers. Ctrl-C stops
    everything.

    Examples:

        penstock demo

        penstock demo --once

        penstock demo --once --output json
    """
    from penstock.demo import run_demo  # noqa: PLC0415 - Spark and numba take seconds to load

    printer = Output(output)
    if printer.is_json and not once:
        raise ConfigurationError("--output json goes with --once: without it the demo shows a page")

    def print_json(changes: object) -> None:
        printer.print_result(changes, lambda: ())

    raise typer.Exit(run_demo(once=once, port=port, print_json=print_json if printer.is_json else None))
