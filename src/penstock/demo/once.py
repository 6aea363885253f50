"""`make demo ONCE=1`: an insert, an update, a change in a joined table and a delete, each timed until searchable."""

import time
from contextlib import closing
from typing import Any

from rich.console import Console
from rich.table import Table

from penstock.demo.pipeline import Pipeline
from penstock.source import connect

_DEADLINE_S = 30.0


def four_changes(pipeline: Pipeline, console: Console) -> int:
    """Print the four latencies; 0 when all were seen, else 1."""
    index = pipeline.index
    results: list[tuple[str, float | None, str]] = []
    with closing(connect(pipeline.source)) as connection, connection.cursor() as cursor:

        def change(what: str, seen: str, sql: str, parameters: tuple[Any, ...], is_so: Any) -> None:
            cursor.execute(sql, parameters)  # in autocommit mode: it returns when it is committed
            results.append((what, pipeline.wait_until(is_so, _DEADLINE_S), seen))

        word = f"quetzal{time.time_ns() % 1_000_000}"
        insert = (
            "INSERT INTO shop.product (name, description, price, store_id, category_id)"
            " VALUES (%s, 'a bird of copper', 12.50, 1, 1)"
        )
        change("insert", f"search finds '{word}'", insert, (f"copper {word}",), lambda: len(index.search(word)) == 1)
        key = str(cursor.lastrowid)
        change(
            "update",
            "its price is 99.99",
            "UPDATE shop.product SET price = 99.99 WHERE id = %s",
            (key,),
            lambda: _one(index.search(word)).get("price") == 99.99,
        )
        city = f"Nova{word}"
        cursor.execute("SELECT COUNT(*) FROM shop.product WHERE store_id = 1 AND state <> 'hidden'")
        (products,) = cursor.fetchone() or (0,)
        change(
            "joined table",
            f"{products} products are in {city}",
            "UPDATE shop.store SET city = %s WHERE id = 1",
            (city,),
            lambda: len(index.search(city, limit=products + 1)) == products,
        )
        change(
            "delete",
            f"search finds no '{word}'",
            "DELETE FROM shop.product WHERE id = %s",
            (key,),
            lambda: not index.search(word),
        )
    table = Table("change", "commit → searchable", "seen by")
    for what, took_ms, seen in results:
        table.add_row(what, "[red]not seen[/red]" if took_ms is None else f"{took_ms:.0f} ms", seen)
    console.print(table)
    missed = [f"{what} ({seen})" for what, took_ms, seen in results if took_ms is None]
    if missed:
        console.print(f"[red]not seen within {_DEADLINE_S:g} s:[/red] {', '.join(missed)}")
        return 1
    return 0


def _one(hits: list[Any]) -> dict[str, Any]:
    return hits[0].document if len(hits) == 1 else {}
