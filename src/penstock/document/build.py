"""Documents from the source's rows: read by key, node by node, and written as JSON column by column.

No Python object is made for a row or a value: rows come as Arrow columns, each becomes a column of JSON texts, and the
texts of a node's rows are woven into those of its parent.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.document.document_id import document_id, routing_text
from penstock.document.graph import REFERENCES_FIELD, DocumentField, DocumentGraph, DocumentNode
from penstock.document.impossible_dates import find_impossible_dates
from penstock.document.parent_rows import ParentRowReader
from penstock.document.queries import NodeQueries
from penstock.document.references import reference_text
from penstock.document.rows import DocumentRows
from penstock.document.sql_text import Key, split_keys
from penstock.document.transform import DocumentTransform
from penstock.model import Column, TableName
from penstock.render.json_lines import JSON_ESCAPES, JsonValueWriter
from penstock.render.text import escape_texts, write_decimals
from penstock.render.weave import ColumnPiece, FormattedColumn, write_lines
from penstock.search.index import FieldKind
from penstock.snapshot.key_order import number_keys

KEYS_PER_QUERY = 500
_UNQUOTED = {FieldKind.INTEGER, FieldKind.FLOAT, FieldKind.BOOLEAN}


class DocumentValueWriter(JsonValueWriter):
    """Writes values as documents have them: decimals are numbers with all digits of their fraction."""

    def write_decimals(self, array: pa.Array) -> FormattedColumn:
        """Write decimals as JSON numbers."""
        return FormattedColumn(write_decimals(array), self.null)

    def write_times(self, array: pa.Array, column: Column) -> FormattedColumn:
        """Write dates and times; one that no calendar has is null, because no index takes it."""
        if not _is_time(column):
            is_wrong = find_impossible_dates(array)
            if is_wrong.any():
                array = pc.if_else(pa.array(is_wrong), pa.scalar(None, array.type), array)
        return super().write_times(array, column)


_VALUES = DocumentValueWriter()


@dataclass(frozen=True, slots=True, eq=False)
class BuiltDocuments:
    """Documents with the keys of their root rows."""

    keys: list[Key]
    ids: list[str]
    documents: pa.Array  # of texts; null: there is nothing to index, by the transform of the spec
    routings: list[str | None] | None
    before_transform: pa.Array | None = None  # the texts that a transform was given; None without one
    failures: Mapping[int, str] = field(default_factory=dict[int, str])  # of the transform, by row

    def __len__(self) -> int:
        return len(self.keys)


References = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _WrittenRows:
    """Rows of a node as JSON texts, and what they refer to by foreign keys that cascade."""

    texts: pa.Array
    references: list[References] | None


class DocumentBuilder:
    """Builds the documents of a graph from the source's rows.

    builder = DocumentBuilder(graph, rows)
    with rows.open_view():
        built = builder.build_documents([(7,), (8,)])
    """

    def __init__(self, graph: DocumentGraph, rows: DocumentRows, missing: frozenset[TableName] = frozenset()) -> None:
        """Build from the tables of a graph; `missing` are those that the source does not have now."""
        self.graph = graph
        self._rows = rows
        self.missing = missing
        spec = graph.spec.transform
        self._transform = None if spec is None else DocumentTransform(spec.python)
        self._parents = ParentRowReader(graph, rows)

    def build_documents(self, keys: Sequence[Key]) -> BuiltDocuments:
        """Return the documents of those keys whose root row exists and is searchable; the others are to be deleted."""
        rows = self._read_rows(self.graph.root, keys)
        if rows is None:
            return BuiltDocuments([], [], pa.array([], pa.string()), None)
        return self._apply_transform(self._finish(rows))

    def build_pages(self, size: int, within: str = "", begin: Key | None = None) -> Iterator[BuiltDocuments]:
        """Yield all documents in the order of their keys, at most `size` at a time, or those whose root rows `c` fulfil
        an SQL condition, or come behind a key. Each page is one read of its own."""
        queries = NodeQueries(self.graph, self.graph.root)
        condition = " AND ".join(filter(None, (within, "" if begin is None else queries.after_key(begin))))
        while self.graph.root.table.name not in self.missing:
            with self._rows.open_view():
                rows = self._rows.read(queries.select_page(condition, size))
                built = self._finish(rows)
            if len(built):
                yield self._apply_transform(built)
            if rows.num_rows < size:
                return
            condition = " AND ".join(filter(None, (within, queries.after_key(built.keys[-1]))))

    def _finish(self, rows: pa.Table) -> BuiltDocuments:
        """Return the documents of root rows that were read."""
        rows = rows.combine_chunks()
        root = self.graph.root
        keys = read_keys(rows, len(root.key))
        documents = self._write_node(root, rows, 0).texts
        routings: list[str | None] | None = None
        if self.graph.routing is not None:
            values = rows.column(rows.num_columns - 1).to_pylist()
            routings = [routing_text(value) for value in values]
        return BuiltDocuments(keys, [document_id(key) for key in keys], documents, routings)

    def _apply_transform(self, built: BuiltDocuments) -> BuiltDocuments:
        """Return documents as the function of the spec makes them, if it names one."""
        if self._transform is None:
            return built
        transformed = self._transform.transform_documents(built.documents)
        return replace(
            built,
            documents=transformed.texts,
            before_transform=built.documents,
            failures=transformed.failures,
        )

    def _write_node(self, node: DocumentNode, rows: pa.Table, first: int) -> "_WrittenRows":
        """Return each row of a node as JSON text, with what is joined to it. The node's own key begins at the column
        `first`, its fields behind that."""
        count = rows.num_rows
        every = np.arange(count, dtype=np.int64)
        line: list[str | ColumnPiece] = []
        at = first + len(node.key)
        for part in node.fields:
            line.append(f"{',' if line else '{'}{json.dumps(part.name, ensure_ascii=False)}:")
            if part.value is not None:
                line.append(json.dumps(part.value, ensure_ascii=False))
                continue
            line.append(_write_field(part, _one_array(rows, at)).pick_rows(every))
            at += 1
        references = self._find_references(node, rows, first, at) if self.graph.references else None
        for child in node.children:
            joined, below = self._write_joined(child, rows, first)
            if references is not None and below is not None:
                references = [(*own, *joined_names) for own, joined_names in zip(references, below, strict=True)]
            line.append(f"{',' if line else '{'}{json.dumps(child.path[-1], ensure_ascii=False)}:")
            line.append(joined.pick_rows(every))
        if references is not None and node.parent is None:
            lists = [json.dumps(sorted(set(names)), ensure_ascii=False) for names in references]
            line.append(f'{"," if line else "{"}"{REFERENCES_FIELD}":')
            line.append(FormattedColumn(pa.array(lists, pa.large_string())).pick_rows(every))
        return _WrittenRows(write_lines([*line, "}" if line else "{}"], count), references)

    def _find_references(self, node: DocumentNode, rows: pa.Table, first: int, at: int) -> list[References]:
        """Return what each row of a node refers to, and what its parents refer to. The node's own key begins at the
        column `first`, the columns of its references at `at`."""
        references = _read_references(NodeQueries(self.graph, node), rows, at)
        if not any(reference.node is node and reference.leads_on for reference in self.graph.references):
            return references
        width = len(node.key)
        keys = read_keys(rows.select(list(range(first, first + width))), width)
        names = self._parents.find_names(node, keys)
        return [(*own, *names.get(key, ())) for own, key in zip(references, keys, strict=True)]

    def _write_joined(
        self, child: DocumentNode, rows: pa.Table, first: int
    ) -> tuple[FormattedColumn, list[References] | None]:
        """Return for each row of the parent node the JSON text of what a node joins to it, and the references."""
        width = len(child.parent.key) if child.parent is not None else 0
        own = [_one_array(rows, first + number) for number in range(width)]
        numbers = number_keys(own)
        _, one_of_each = np.unique(numbers, return_index=True)
        distinct = rows.select(list(range(first, first + width))).take(pa.array(one_of_each))
        joined = self._read_rows(child, read_keys(distinct, width))
        if joined is None:
            nothing = pa.nulls(rows.num_rows, pa.large_string())
            return FormattedColumn(nothing, "[]" if child.is_many else "null"), None
        below = self._write_node(child, joined, width)
        texts = below.texts
        upper = _match_rows(
            [_one_array(distinct, number) for number in range(width)],
            [_one_array(joined, number) for number in range(width)],
        )
        count = distinct.num_rows
        written = _write_arrays(texts, upper, count, child.limit) if child.is_many else _take_one(texts, upper, count)
        place_of = np.empty(count, np.int64)
        place_of[numbers[one_of_each]] = np.arange(count)
        picked = written.take(pa.array(place_of[numbers]))
        references: list[References] | None = None
        if below.references is not None:
            gathered: list[list[str]] = [[] for _ in range(count)]
            for row, names in zip(upper.tolist(), below.references, strict=True):
                gathered[row] += names
            references = [tuple(gathered[int(row)]) for row in place_of[numbers]]
        if child.is_many:
            return FormattedColumn(picked, "null", "[", "]"), references
        return FormattedColumn(picked, "null"), references

    def _read_rows(self, node: DocumentNode, keys: Sequence[Key]) -> pa.Table | None:
        """Return the rows of a node for keys; None when there are no keys, or no table."""
        tables = [node.table.name, *([node.link.table.name] if node.link is not None else [])]
        if not keys or not self.missing.isdisjoint(tables):
            return None
        queries = NodeQueries(self.graph, node)
        parts = [self._rows.read(queries.select_rows(some)) for some in split_keys(keys, KEYS_PER_QUERY)]
        return pa.concat_tables(parts).combine_chunks()


def _read_references(queries: NodeQueries, rows: pa.Table, first: int) -> list[References]:
    """Return the references of each row, whose columns begin at `first`."""
    names: list[list[str]] = [[] for _ in range(rows.num_rows)]
    for reference in queries.references:
        width = len(reference.columns)
        columns = [rows.column(first + number).to_pylist() for number in range(width)]
        first += width
        for own, key in zip(names, zip(*columns, strict=True), strict=True):
            if all(value is not None for value in key):
                own.append(reference_text(reference.parent.name, key))
    return [tuple(own) for own in names]


def read_keys(rows: pa.Table, width: int) -> list[Key]:
    """Return the first columns of rows as keys."""
    columns = [rows.column(number).to_pylist() for number in range(width)]
    return list(zip(*columns, strict=True))


def _one_array(rows: pa.Table, number: int) -> Any:
    """Return a column as one array."""
    column = rows.column(number)
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays([pa.array([], column.type), *column.chunks])


def _match_rows(distinct: Sequence[Any], keys: Sequence[Any]) -> NDArray[np.int64]:
    """Return for each row the number of the distinct key that it has."""
    count = len(distinct[0])
    numbers = number_keys([pa.concat_arrays([left, right]) for left, right in zip(distinct, keys, strict=True)])
    place_of = np.empty(int(numbers.max(initial=0)) + 1, np.int64)
    place_of[numbers[:count]] = np.arange(count)
    return place_of[numbers[count:]]


def _take_one(texts: pa.Array, upper: NDArray[np.int64], count: int) -> pa.Array:
    """Return the text that belongs to each row above; null where there is none."""
    rows = np.full(count, -1, np.int64)
    rows[upper] = np.arange(upper.size)
    return texts.take(pa.array(rows, mask=rows < 0))


def _write_arrays(texts: pa.Array, upper: NDArray[np.int64], count: int, limit: int | None) -> pa.Array:
    """Return the texts that belong to each row above, in their order, divided by commas."""
    order = np.argsort(upper, kind="stable")
    counts = np.bincount(upper, minlength=count)
    if limit is not None:
        rank = np.arange(upper.size) - np.repeat(np.cumsum(counts) - counts, counts)
        order = order[rank < limit]
        counts = np.minimum(counts, limit)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), texts.take(pa.array(order)))
    return pc.binary_join(lists, pa.scalar(",", pa.large_string()))


def _write_field(part: DocumentField, array: Any) -> FormattedColumn:
    """Return a field's values as JSON texts."""
    if part.column is not None:
        return _VALUES.write_column(part.column, array)
    if part.kind in _UNQUOTED:
        return FormattedColumn(array, "null")
    if part.kind is FieldKind.DATE and (is_wrong := find_impossible_dates(array)).any():
        array = pc.if_else(pa.array(is_wrong), pa.scalar(None, array.type), array)
    return FormattedColumn(escape_texts(array, JSON_ESCAPES), "null", '"', '"')


def _is_time(column: Column) -> bool:
    """Return whether a column holds times of day, which may have any hours."""
    return column.type.name.startswith("TIME") and not column.type.name.startswith("TIMESTAMP")
