"""`penstock demo`: start everything, then serve the page or make four changes."""

from rich.console import Console

from penstock.demo.once import four_changes
from penstock.demo.page import listen, serve_page
from penstock.demo.pipeline import running
from penstock.demo.shop import ShopSize
from penstock.demo.steps import Steps

PAGE_PORT = 8420


def run_demo(*, once: bool, port: int = PAGE_PORT, console: Console | None = None) -> int:
    """The exit code."""
    console = console or Console(highlight=False)
    listener = None if once else listen(port)
    with running(Steps(console), ShopSize()) as pipeline:
        if listener is None:
            return four_changes(pipeline, console)
        where = f"http://127.0.0.1:{listener.getsockname()[1]}"
        console.print(f"\n  [bold]Open {where}[/bold]   Ctrl-C stops everything\n")
        serve_page(pipeline, listener)
        console.print("stopping …")
    console.print("stopped, nothing is left running")
    return 0
