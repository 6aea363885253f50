"""`make demo ONCE=1`: an insert, an update, a change in a joined table and a delete, each timed until searchable."""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from penstock.demo.pipeline import DemoPipeline
from penstock.source import connect

_DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True)
class TimedChange:
    """A change of the database, and how long after its commit a search showed it; None if none did in time."""

    change: str
    latency_ms: float | None
    seen_by: str


def make_four_changes(pipeline: DemoPipeline) -> list[TimedChange]:
    """Make the four changes, one after the other, and time each until it is searchable."""
    index = pipeline.index
    results: list[TimedChange] = []
    with closing(connect(pipeline.source)) as connection, connection.cursor() as cursor:

        def time_change(title: str, seen: str, sql: str, parameters: tuple[Any, ...], is_so: Any) -> None:
            """Make one change, and time it until a search shows it."""
            cursor.execute(sql, parameters)  # in autocommit mode: it returns when it is committed
            results.append(TimedChange(title, pipeline.wait_until(is_so, _DEADLINE_S), seen))

        word = f"quetzal{time.time_ns() % 1_000_000}"
        insert = (
            "INSERT INTO shop.product (name, description, price, store_id, category_id)"
            " VALUES (%s, 'a bird of copper', 12.50, 1, 1)"
        )
        time_change(
            "insert", f"search finds '{word}'", insert, (f"copper {word}",), lambda: len(index.search(word)) == 1
        )
        key = str(cursor.lastrowid)
        time_change(
            "update",
            "its price is 99.99",
            "UPDATE shop.product SET price = 99.99 WHERE id = %s",
            (key,),
            lambda: _single_hit(index.search(word)).get("price") == 99.99,
        )
        city = f"Nova{word}"
        cursor.execute("SELECT COUNT(*) FROM shop.product WHERE store_id = 1 AND state <> 'hidden'")
        (products,) = cursor.fetchone() or (0,)
        time_change(
            "joined table",
            f"{products} products are in {city}",
            "UPDATE shop.store SET city = %s WHERE id = 1",
            (city,),
            lambda: len(index.search(city, limit=products + 1)) == products,
        )
        time_change(
            "delete",
            f"search finds no '{word}'",
            "DELETE FROM shop.product WHERE id = %s",
            (key,),
            lambda: not index.search(word),
        )
    return results


def print_changes(changes: Sequence[TimedChange], console: Console) -> None:
    """Print the changes as a table, and below it those that no search showed in time."""
    table = Table("change", "commit → searchable", "seen by")
    for timed in changes:
        latency = "[red]not seen[/red]" if timed.latency_ms is None else f"{timed.latency_ms:.0f} ms"
        table.add_row(timed.change, latency, timed.seen_by)
    console.print(table)
    missed = [f"{timed.change} ({timed.seen_by})" for timed in changes if timed.latency_ms is None]
    if missed:
        console.print(f"[red]not seen within {_DEADLINE_S:g} s:[/red] {', '.join(missed)}")


def _single_hit(hits: list[Any]) -> dict[str, Any]:
    """Return the document of the only hit; empty if there is none."""
    return hits[0].document if len(hits) == 1 else {}
