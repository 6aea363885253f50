"""What a batch of changes touches: keys of root rows, values to look roots up by, and statements.

Both images of a change count: a row that moved from one parent to another touches both. An update that changes no
column which a document uses touches nothing.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.binlog.values.column import Family, kernel_family_of
from penstock.document.document_id import routing_text
from penstock.document.graph import DocumentGraph
from penstock.document.queries import RootLookup, find_lookups
from penstock.document.references import reference_text
from penstock.document.sql_text import Key, value_from_json
from penstock.errors import MissingExtraError, SchemaError
from penstock.model import Column, TableName, TableSchema

try:
    import orjson
except ImportError as error:
    raise MissingExtraError.for_extra("search", "building documents") from error

log = logging.getLogger(__name__)

Image = dict[str, Any]
# The columns that are needed of a stream with a filter and DDL.
CHANGE_COLUMNS = ("_change_type", "_table", "before", "after", "ddl", "_changed", "_absent", "_seq")


@dataclass(frozen=True, slots=True)
class TableStatement:
    """A statement of the log that may concern a table of the document."""

    table: str  # database.table, or a database
    text: str
    sequence: int


@dataclass(slots=True)
class TouchedKeys:
    """What a batch touches: each key with the highest `_seq` that touched it."""

    roots: dict[Key, int] = field(default_factory=dict[Key, int])
    # Those that rows had in this batch, None for NULL.
    routings: dict[Key, set[str | None]] = field(default_factory=dict[Key, set[str | None]])
    lookups: dict[int, dict[Key, int]] = field(default_factory=dict[int, dict[Key, int]])  # by number of the lookup
    references: dict[str, int] = field(default_factory=dict[str, int])  # rows that others follow by foreign keys
    statements: list[TableStatement] = field(default_factory=list[TableStatement])
    changes: int = 0  # of tables of the document
    unused: int = 0  # of them, those of columns that no document uses
    unknown: int = 0  # the highest `_seq` of changes that may touch documents which nobody can name; 0: there are none


class _KeyReader:
    """Reads the values of some columns of one table from row images: what is the same for all images is found out
    once."""

    def __init__(self, table: TableName, columns: tuple[Column, ...]) -> None:
        self._table, self._columns = table, columns
        self.names = tuple(column.name for column in columns)
        self._are_integers = all(kernel_family_of(column)[0] is Family.INTEGER for column in columns)

    def read(self, image: Image) -> Key | None:
        """Return the values; None when one of them is NULL. Raises SchemaError where the image lacks a column."""
        if self._are_integers:  # which JSON has as they are
            key = tuple([value for name in self.names if type(value := image.get(name)) is int])
            if len(key) == len(self.names):
                return key
        return read_image_key(self._table, image, self._columns)


@dataclass(frozen=True, slots=True, eq=False)
class _TableKeys:
    """What is read from the images of one table."""

    name: TableName
    root: _KeyReader | None  # of the root table: the key of the document
    routing: Column | None  # of the root table
    lookups: list[tuple[int, _KeyReader]]
    parents: list[_KeyReader]  # keys by which others follow a row

    @property
    def names(self) -> tuple[str, ...]:
        """Return all columns that lead to documents by their own values."""
        readers = [*([self.root] if self.root is not None else []), *(reader for _, reader in self.lookups)]
        names = {name for reader in readers for name in reader.names}
        return tuple(sorted(names | ({self.routing.name} if self.routing is not None else set[str]())))


class ChangeReader:
    """Reads which keys of one document graph a batch of changes touches.

    touched = ChangeReader(graph).read_changes(batch)
    """

    def __init__(self, graph: DocumentGraph) -> None:
        self.graph = graph
        self.lookups: list[RootLookup] = find_lookups(graph)
        self._used = graph.used_columns
        self._has_conditions_on_references = graph.has_conditions_on_references
        self._parents: dict[TableName, set[tuple[Column, ...]]] = {}
        for reference in (*graph.references, *graph.parent_references):
            self._parents.setdefault(reference.parent.name, set()).add(reference.parent_columns)
        self._keys = {name: self._keys_of(name) for name in graph.tables}

    def _keys_of(self, name: TableName) -> _TableKeys:
        """Return what is read from the images of a table."""
        root = self.graph.root
        is_root = name == root.table.name
        lookups = [
            (number, _KeyReader(name, lookup.columns))
            for number, lookup in enumerate(self.lookups)
            if lookup.table == name
        ]
        return _TableKeys(
            name,
            _KeyReader(name, root.key) if is_root else None,
            self.graph.routing if is_root else None,
            lookups,
            [_KeyReader(name, columns) for columns in self._parents.get(name, ())],
        )

    @property
    def key_names(self) -> list[tuple[str, ...]]:
        """Return the names of the columns by which documents are found: those of their id, and of each lookup."""
        keys = [self.graph.root.key, *(lookup.columns for lookup in self.lookups)]
        return [tuple(column.name for column in key) for key in keys]

    def read_changes(self, changes: pa.Table, *, skips_unfit: bool = False) -> TouchedKeys:
        """Return what changes, in the columns of CHANGE_COLUMNS, touch.

        A row without a key column, or with a value of another type than that has now, is an error. With `skips_unfit`
        it is skipped: the statement that added or renamed the column, or changed its type, comes later in the log, and
        has all documents compared. For an image without all columns (`binlog_row_image=MINIMAL`) there is no such
        statement: what it touches is unknown.
        """
        touched = TouchedKeys()
        names = changes.column("_table")
        for name, table in self.graph.tables.items():
            own = changes.filter(pc.equal(names, str(name)))
            rows = own.filter(pc.not_equal(own.column("_change_type"), "ddl"))
            touched.changes += rows.num_rows
            used = drop_unused(rows, self._used[name])
            touched.unused += rows.num_rows - used.num_rows
            if used.num_rows:
                self._read_rows(table, used, touched, skips_unfit=skips_unfit)
        self._read_statements(changes, touched)
        return touched

    def _read_rows(self, table: TableSchema, rows: pa.Table, touched: TouchedKeys, *, skips_unfit: bool) -> None:
        """Add what the rows of one table touch."""
        skipped, reason, keys = 0, "", self._keys[table.name]
        names = keys.names
        for before, after, is_whole, sequence in _read_images(rows):
            try:
                if before is not None:
                    self._read_image(keys, before, sequence, touched)
                if after is not None and (before is None or any(before.get(name) != after.get(name) for name in names)):
                    self._read_image(keys, after, sequence, touched)  # else it leads to the same documents
                if keys.parents:
                    self._read_parents(keys, before, after, sequence, touched)
            except SchemaError as error:
                if not skips_unfit:
                    raise
                skipped, reason = skipped + 1, str(error)
                if not is_whole:
                    touched.unknown = max(touched.unknown, sequence)
        if skipped:
            log.warning(
                "rows skipped that do not fit their table as it is now index=%s table=%s rows=%d: all documents are"
                " compared when the statement that altered it is reached, or now if there is none reason=%s",
                *(self.graph.spec.index, table.name, skipped, reason),
            )

    def _read_image(self, keys: _TableKeys, image: Image, sequence: int, touched: TouchedKeys) -> None:
        """Add what one row image touches."""
        if keys.root is not None:
            key = keys.root.read(image)
            if key is not None:
                touched.roots[key] = max(touched.roots.get(key, 0), sequence)
                if keys.routing is not None:
                    value = _read_value(keys.name, image, keys.routing)
                    touched.routings.setdefault(key, set()).add(routing_text(value))
        for number, reader in keys.lookups:
            key = reader.read(image)
            if key is not None:
                values = touched.lookups.setdefault(number, {})
                values[key] = max(values.get(key, 0), sequence)

    def _read_parents(
        self, table: _TableKeys, before: Image | None, after: Image | None, sequence: int, touched: TouchedKeys
    ) -> None:
        """Add a row that others follow by foreign keys. Every change of it counts, not only a delete: rows below it may
        be gone by another cascade before they are looked up, and then only the index knows of them.

        Where rows follow it to another key, or match a condition only without it, documents that do not name it change:
        which ones, nobody knows.
        """
        for reader in table.parents:
            keys = [None if image is None else reader.read(image) for image in (before, after)]
            for key in keys:
                if key is not None:
                    text = reference_text(table.name, key)
                    touched.references[text] = max(touched.references.get(text, 0), sequence)
            is_gone = before is not None and keys[0] is not None and keys[0] != keys[1]
            if is_gone and (after is not None or self._has_conditions_on_references):
                touched.unknown = max(touched.unknown, sequence)

    def _read_statements(self, changes: pa.Table, touched: TouchedKeys) -> None:
        """Add the statements."""
        own = changes.filter(pc.equal(changes.column("_change_type"), "ddl"))
        for name, text, sequence in zip(
            *(own.column(column).to_pylist() for column in ("_table", "ddl", "_seq")), strict=True
        ):
            touched.statements.append(TableStatement(str(name or ""), str(text or ""), int(sequence)))


def drop_unused(rows: pa.Table, used: frozenset[str]) -> pa.Table:
    """Return the changes that concern a column in use: all but updates of other columns only."""
    if not rows.num_rows:
        return rows
    changed = rows.column("_changed").combine_chunks()
    if isinstance(changed, pa.ChunkedArray):
        changed = pa.concat_arrays(changed.chunks)
    is_wanted = pc.is_in(changed.flatten(), pa.array(sorted(used), pa.string()))
    with_used = pc.list_parent_indices(changed).filter(is_wanted)
    concerns = np.zeros(rows.num_rows, np.bool_)
    concerns[with_used.to_numpy(zero_copy_only=False)] = True
    is_update = pc.equal(rows.column("_change_type"), "update").to_numpy(zero_copy_only=False).astype(np.bool_)
    return keep_rows(rows, concerns | ~is_update)


def keep_rows(rows: pa.Table, are_kept: NDArray[np.bool_]) -> pa.Table:
    """Return some rows of a table; nothing is copied when that is all of them."""
    return rows if are_kept.all() else rows.filter(pa.array(are_kept))


def _read_images(rows: pa.Table) -> Iterator[tuple[Image | None, Image | None, bool, int]]:
    """Yield the row before and after each change, whether its images have all columns, and its `_seq`. What an image
    after a change does not have (`binlog_row_image=MINIMAL`) was not changed, and is taken from the one before it."""
    columns = (rows.column(name).to_pylist() for name in ("before", "after", "_absent", "_seq"))
    for before_text, after_text, absent, sequence in zip(*columns, strict=True):
        before: Image | None = None if before_text is None else orjson.loads(before_text)
        after: Image | None = None if after_text is None else orjson.loads(after_text)
        if before is not None and after is not None:
            after = before | after
        yield before, after, not absent, sequence


def read_image_key(table: TableName, image: Image, columns: tuple[Column, ...]) -> Key | None:
    """Return the values of some columns of a row image; None when one of them is NULL, which nothing is joined to."""
    values = tuple(_read_value(table, image, column) for column in columns)
    return None if any(value is None for value in values) else values  # type: ignore[return-value]


def _read_value(table: TableName, image: Image, column: Column) -> Any:
    """Return a value of a row image; SchemaError where the image does not have the column."""
    if column.name not in image:
        raise SchemaError(
            f"the log has rows of {table} without the column {column.name}, by which documents are found: it has got"
            " that name since, or binlog_row_image is not FULL, or it is a generated column, which MariaDB 11 leaves"
            " out of its log"
        )
    return value_from_json(column, image[column.name])
