"""`penstock demo`: start everything, then serve the page or make a few changes."""

from collections.abc import Callable, Sequence

from rich.console import Console

from penstock.demo.once import make_changes, print_changes
from penstock.demo.page import open_listener, serve_page
from penstock.demo.pipeline import TimedChange, run_pipeline
from penstock.demo.shop import ShopSize
from penstock.demo.steps import StepDisplay

PAGE_PORT = 8420


def run_demo(
    *, once: bool, port: int = PAGE_PORT, print_json: Callable[[Sequence[TimedChange]], None] | None = None
) -> int:
    """Run the demo and return the exit code. `print_json` prints the changes; steps then go to stderr."""
    console = Console(highlight=False, stderr=print_json is not None)
    listener = None if once else open_listener(port)
    with run_pipeline(StepDisplay(console), ShopSize()) as pipeline:
        if listener is None:
            changes = make_changes(pipeline)
            if print_json is not None:
                print_json(changes)
            else:
                print_changes(changes, console)
            return 0 if all(timed.latency_ms is not None for timed in changes) else 1
        where = f"http://127.0.0.1:{listener.getsockname()[1]}"
        console.print(f"\n  [bold]Open {where}[/bold]   Ctrl-C stops everything\n")
        serve_page(pipeline, listener)
        console.print("stopping …")
    console.print("stopped, nothing is left running")
    return 0
