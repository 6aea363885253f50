"""A share of the documents of an index, chosen by a hash of their keys: the same ones of the database and of the index.

Documents whose key begins with an integer are chosen in ranges of neighbours, so that only these are read and built.
Others are chosen one by one, when they have been read.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.document.graph import DocumentGraph
from penstock.document.key_range import KeyRange, find_key_number, has_integer_key
from penstock.document.rows import DocumentRows
from penstock.document.sql_text import quote_table
from penstock.model.integer_range import IntegerRange
from penstock.render.key_sample import KeySample
from penstock.snapshot.key_column import quote_name
from penstock.snapshot.source_rows import SelectQuery

_FEW_DOCUMENTS = 10_000


@dataclass(frozen=True, slots=True)
class DocumentSample:
    """A sample of the documents of a graph.

    sample = DocumentSample.of(0.01, graph, rows)
    for condition in sample.conditions(): ...
    """

    graph: DocumentGraph
    sample: KeySample
    bounds: tuple[int, int] | None  # of the first key column, an integer; None for a sample by ids
    is_small: bool = False  # all documents are read: that takes less time than many ranges

    @classmethod
    def of(
        cls, share: float, graph: DocumentGraph, rows: DocumentRows, *, documents: int | None = None
    ) -> "DocumentSample":
        """Return a sample of the documents that the database has now, which are about so many."""
        bounds = _find_bounds(graph, rows) if has_integer_key(graph) else None
        sample = KeySample(share) if bounds is None else KeySample.of_integers(share, *bounds)
        return cls(graph, sample, bounds, documents is not None and documents <= _FEW_DOCUMENTS)

    def conditions(self, keys: KeyRange | None = None) -> Iterator[str]:
        """Yield the SQL conditions of root rows `c`, one after the other, that may be of the sample, and of a range."""
        if self.bounds is None or self.is_small:
            yield "" if keys is None else keys.condition
            return
        low, high = self.bounds
        if keys is not None:
            low = max(low, low if keys.integers.low is None else keys.integers.low)
            high = min(high, high if keys.integers.high is None else keys.integers.high)
        for some in self.sample.ranges(low, high) if low <= high else ():
            yield KeyRange(self.graph, IntegerRange(some.low, some.high)).condition

    def choose(self, ids: pa.Array) -> NDArray[np.bool_]:
        """Return which ids belong to the sample; one that no row can have is chosen by its text."""
        chosen = self.sample.has_texts(ids)
        if self.bounds is None:
            return chosen
        numbers = [find_key_number(name, self.graph) for name in ids.to_pylist()]
        are_keys = np.array([number is not None for number in numbers], np.bool_)
        by_number = self.sample.has_integers(np.array([number or 0 for number in numbers], np.object_))
        return np.where(are_keys, by_number, chosen)


def _find_bounds(graph: DocumentGraph, rows: DocumentRows) -> tuple[int, int] | None:
    """Return the least and the greatest value of the root's first key column; None for an empty table."""
    column = graph.root.key[0]
    name, table = quote_name(column.name), quote_table(graph.root.table.name)
    ends: list[int] = []
    with rows.open_view():
        for order in ("ASC", "DESC"):
            sql = f"SELECT {name} FROM {table} ORDER BY {name} {order} LIMIT 1"
            ends += rows.read(SelectQuery(sql, (column,))).column(0).to_pylist()
    return (int(ends[0]), int(ends[-1])) if ends else None
