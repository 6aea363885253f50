"""`make demo ONCE=1`: one change of each kind, each timed until every document that it touches is searchable."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from decimal import Decimal

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from penstock.demo.change import ShopChange
from penstock.demo.order_changes import AddLine, DeleteOrder, NewOrder, PutOnTag, RemoveLine, SetState, TakeOffTag
from penstock.demo.pipeline import DemoPipeline, TimedChange
from penstock.demo.shared_changes import ChangeProduct, RaisePrices, RenameTag
from penstock.source import connect


def make_changes(pipeline: DemoPipeline) -> list[TimedChange]:
    """Make one change of each kind, one after the other, and time each until it is searchable."""
    first = pipeline.make_change(NewOrder())
    return [first, *(pipeline.make_change(change) for change in _plan_changes(pipeline, first.order or 0))]


def _plan_changes(pipeline: DemoPipeline, order: int) -> Iterator[ShopChange]:
    """Yield the changes that follow on a new order; each is looked up when the one before it was made."""
    with closing(connect(pipeline.source)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, name, price FROM shop.product WHERE name LIKE '%copper kettle' LIMIT 1")
        product, name, price = cursor.fetchone() or (1, "", Decimal(1))
        cursor.execute(
            "SELECT id, name FROM shop.tag WHERE id NOT IN (SELECT tag_id FROM shop.order_tag WHERE order_id = %s)"
            " ORDER BY name = 'gift' DESC LIMIT 1",
            (order,),
        )
        tag, tag_name = cursor.fetchone() or (1, "")
        yield AddLine(order=order, product=product, quantity=2)
        yield PutOnTag(order=order, tag=tag)
        yield ChangeProduct(product=product, name=name, price=price + 5)
        yield ChangeProduct(product=product, name=f"{name} with a lid", price=price + 5)
        yield RenameTag(tag=tag, name=f"{tag_name} wrapped")
        yield RaisePrices()
        yield TakeOffTag(order=order, tag=tag)
        cursor.execute("SELECT MAX(id) FROM shop.order_line WHERE order_id = %s", (order,))
        (line,) = cursor.fetchone() or (1,)
        yield RemoveLine(line=line)
        yield SetState(order=order, state="shipped")
        yield DeleteOrder(order=order)


def print_changes(changes: Sequence[TimedChange], console: Console) -> None:
    """Print the changes as a table, and below it those that were not searchable in time."""
    table = Table("change")
    table.add_column("documents", justify="right")
    table.add_column("commit → searchable", justify="right")
    table.add_column("what")
    for timed in changes:
        latency = "[red]not seen[/red]" if timed.latency_ms is None else f"{timed.latency_ms:.0f} ms"
        table.add_row(timed.change, f"{timed.documents:,}", latency, escape(timed.text))
    console.print(table)
    missed = [f"{timed.change} ({escape(timed.text)})" for timed in changes if timed.latency_ms is None]
    if missed:
        console.print(f"[red]not seen in time:[/red] {', '.join(missed)}")
