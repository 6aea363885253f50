"""Finds the rows that documents depend on through parents of parents, by foreign keys that cascade.

The parents of many rows are read together, table by table and level by level, until there are no new ones: that ends
for any depth of tables, and where rows lead in a circle. The server compares the values of the keys, by its own rules.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.document.graph import DocumentGraph, DocumentNode, ParentReference, RowReference
from penstock.document.queries import select_parents
from penstock.document.references import reference_text
from penstock.document.rows import DocumentRows
from penstock.document.sql_text import Key, KeyValue, split_keys
from penstock.model import Column, TableName, TableSchema
from penstock.snapshot.source_rows import SelectQuery

KEYS_PER_QUERY = 500


@dataclass(frozen=True, slots=True, eq=False)
class ParentQueries:
    """The SELECT of the parents of rows by one foreign key, with what the parents themselves refer to."""

    graph: DocumentGraph
    table: TableSchema
    key: tuple[Column, ...]  # by which the rows of the table are known
    reference: RowReference | ParentReference

    @property
    def parent(self) -> TableSchema:
        """Return the table of the parents."""
        return self.reference.parent

    @property
    def parent_key(self) -> tuple[Column, ...]:
        """Return the columns by which the parents are known."""
        by_name = {column.name: column for column in self.parent.columns}
        return tuple(by_name[name] for name in self.parent.key) or self.reference.parent_columns

    @property
    def parent_references(self) -> tuple[ParentReference, ...]:
        """Return the foreign keys of the parents."""
        return tuple(part for part in self.graph.parent_references if part.table.name == self.parent.name)

    def select(self, keys: Sequence[Key]) -> SelectQuery:
        """Return the SELECT: the key of each row, that of its parent, and the columns of the parent's foreign keys."""
        columns = [column for part in self.parent_references for column in part.columns]
        return select_parents(self.table, self.key, self.reference, [*self.parent_key, *columns], keys)

    def follow_parents(self) -> "Iterator[ParentQueries]":
        """Yield the same for the parents of the parents, where those have foreign keys."""
        for part in self.parent_references:
            queries = ParentQueries(self.graph, self.parent, self.parent_key, part)
            if queries.parent_references:
                yield queries


def find_parent_queries(graph: DocumentGraph, node: DocumentNode) -> list[ParentQueries]:
    """Return the SELECTs of the parents of a node's rows that lead on to others."""
    return [
        ParentQueries(graph, node.table, node.key, reference)
        for reference in graph.references
        if reference.node is node and reference.leads_on
    ]


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of a parent table; tables without a primary key have one identity per foreign key that leads to them."""

    table: TableName
    columns: tuple[str, ...]
    key: Key


class ParentRowReader:
    """Reads what rows of documents depend on behind their own parents.

    names = ParentRowReader(graph, rows).find_names(graph.root, [(7,), (8,)])
    assert names[7,] == ("shop.country:1",)
    """

    def __init__(self, graph: DocumentGraph, rows: DocumentRows) -> None:
        self._graph, self._rows = graph, rows

    def find_names(self, node: DocumentNode, keys: Sequence[Key]) -> dict[Key, tuple[str, ...]]:
        """Return for the keys of a node's rows the names of the rows that their parents depend on, and so on."""
        first: dict[Key, list[_Row]] = {}
        parents: dict[_Row, list[_Row]] = {}
        names: dict[_Row, tuple[str, ...]] = {}
        pending: list[tuple[ParentQueries, list[Key]]] = []
        distinct = list(dict.fromkeys(keys))
        for queries in find_parent_queries(self._graph, node):
            reached: dict[_Row, tuple[str, ...]] = {}
            for key, parent, own in self._read(queries, distinct):
                first.setdefault(key, []).append(parent)
                reached[parent] = own
            pending += _next_reads(queries, reached, names)
        while pending:
            queries, some = pending.pop(0)
            reached = {}
            columns = tuple(column.name for column in queries.key)
            for key, parent, own in self._read(queries, some):
                parents.setdefault(_Row(queries.table.name, columns, key), []).append(parent)
                reached[parent] = own
            pending += _next_reads(queries, reached, names)
        return {key: _collect_names(rows, parents, names) for key, rows in first.items()}

    def _read(self, queries: ParentQueries, keys: Sequence[Key]) -> Iterator[tuple[Key, _Row, tuple[str, ...]]]:
        """Yield the key of each row with its parent and the names of the rows which that refers to."""
        width, parent_width = len(queries.key), len(queries.parent_key)
        columns = tuple(column.name for column in queries.parent_key)
        for some in split_keys(keys, KEYS_PER_QUERY):
            table = self._rows.read(queries.select(some))
            for values in zip(*(column.to_pylist() for column in table.columns), strict=True):
                parent = _Row(queries.parent.name, columns, values[width : width + parent_width])
                yield values[:width], parent, _name_rows(queries.parent_references, values[width + parent_width :])


def _name_rows(references: Sequence[ParentReference], values: Sequence[KeyValue | None]) -> tuple[str, ...]:
    """Return the names of the rows that the values of foreign keys refer to; one with a NULL refers to none."""
    names: list[str] = []
    for reference in references:
        width = len(reference.columns)
        key = tuple(value for value in values[:width] if value is not None)
        if len(key) == width:
            names.append(reference_text(reference.parent.name, key))
        values = values[width:]
    return tuple(names)


def _next_reads(
    queries: ParentQueries, reached: dict[_Row, tuple[str, ...]], names: dict[_Row, tuple[str, ...]]
) -> Iterator[tuple[ParentQueries, list[Key]]]:
    """Yield what is to be read for rows that were reached for the first time, and remember these."""
    new = {row: own for row, own in reached.items() if row not in names}
    names |= new
    keys = [row.key for row, own in new.items() if own]
    if keys:
        for following in queries.follow_parents():
            yield following, keys


def _collect_names(
    rows: Sequence[_Row], parents: dict[_Row, list[_Row]], names: dict[_Row, tuple[str, ...]]
) -> tuple[str, ...]:
    """Return the names that rows and all their parents refer to."""
    pending, seen = list(rows), set(rows)
    collected: list[str] = []
    while pending:
        row = pending.pop()
        collected += names[row]
        for parent in parents.get(row, ()):
            if parent not in seen:
                seen.add(parent)
                pending.append(parent)
    return tuple(collected)
