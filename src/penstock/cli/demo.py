"""penstock demo"""

from typing import Annotated

import typer


def demo(
    once: Annotated[
        bool, typer.Option("--once", help="Make four changes, print how long each took to be searchable, and exit.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0 takes a free one.")] = 8420,
) -> None:
    """Run a shop, its search index, and a page that shows how fast one follows the other.

    Starts a private MariaDB, captures its log, and runs Spark and an index on disk, all on this machine and only
    for this run. Ctrl-C stops everything.

    Examples:

        penstock demo

        penstock demo --once
    """
    from penstock.demo import run_demo  # noqa: PLC0415 - Spark and numba take seconds to load

    raise typer.Exit(run_demo(once=once, port=port))
