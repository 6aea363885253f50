"""Ranges of root rows by their key, so that documents can be built and written in several places at once.

Together the ranges cover every key that there can ever be: rows that come or go meanwhile are in one of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.document.build import read_keys
from penstock.document.document_id import key_text
from penstock.document.graph import DocumentGraph
from penstock.document.queries import NodeQueries
from penstock.document.rows import DocumentRows
from penstock.document.sql_text import Key, value_from_text
from penstock.errors import PenstockError


@dataclass(frozen=True, slots=True)
class RootRange:
    """The root rows behind one key, up to and including another one; None is no limit."""

    after: Key | None
    until: Key | None

    def condition(self, graph: DocumentGraph) -> str:
        """Return the SQL condition of the root rows `c` of the range."""
        queries = NodeQueries(graph, graph.root)
        limits = (
            "" if self.after is None else queries.after_key(self.after),
            "" if self.until is None else queries.up_to_key(self.until),
        )
        return " AND ".join(filter(None, limits))


def plan_ranges(rows: DocumentRows, graph: DocumentGraph, size: int, begin: Key | None = None) -> Iterator[RootRange]:
    """Yield the ranges of all root rows behind a key, in its order, with `size` rows each when they are planned."""
    queries, last = NodeQueries(graph, graph.root), begin
    while True:
        with rows.open_view():
            limits = rows.read(queries.select_key("" if last is None else queries.after_key(last), size))
        if not limits.num_rows:
            yield RootRange(last, None)
            return
        (until,) = read_keys(limits, len(graph.root.key))
        yield RootRange(last, until)
        last = until


def key_to_json(graph: DocumentGraph, key: Key) -> list[list[str]]:
    """Return the key of a root row as texts, with the columns that it is of."""
    return [[column.name, str(column.type), key_text(value)] for column, value in zip(graph.root.key, key, strict=True)]


def key_from_json(graph: DocumentGraph, plain: Sequence[Sequence[str]] | None) -> Key | None:
    """Return the key that texts stand for; None when the root table has another key by now, or there is none."""
    columns = graph.root.key
    if plain is None or [(column.name, str(column.type)) for column in columns] != [
        (name, kind) for name, kind, _ in plain
    ]:
        return None
    try:
        return tuple(value_from_text(column, text) for column, (_, _, text) in zip(columns, plain, strict=True))
    except (ValueError, ArithmeticError, PenstockError):
        return None
