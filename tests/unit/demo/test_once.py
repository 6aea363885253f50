"""The table that `penstock demo --once` prints."""

import io

from rich.console import Console

from penstock.demo.once import print_changes
from penstock.demo.pipeline import TimedChange


def test_the_table_has_documents_and_milliseconds_and_names_what_was_not_seen() -> None:
    output = io.StringIO()
    changes = [
        TimedChange("rename a tag", "the tag gift is now [red]", 1234, 87.4),
        TimedChange("new order", "order A-3001 is new", 1, None, 2001),
    ]
    print_changes(changes, Console(file=output, width=120))
    lines = output.getvalue().splitlines()
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    assert rows == [
        ["rename a tag", "1,234", "87 ms", "the tag gift is now [red]"],
        ["new order", "1", "not seen", "order A-3001 is new"],
    ]
    assert lines[-1] == "not seen in time: new order (order A-3001 is new)"
