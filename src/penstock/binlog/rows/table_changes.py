"""The rows events of a block → changes: a row before, a row after, or both, column by column.

Unlike `binlog.rows.changes` this keeps apart what the log does not carry and what is NULL, and keeps dates that no
calendar has: dates and times are the text that the server prints, in UTC.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import distinct
from penstock.binlog.events.block import Block
from penstock.binlog.events.gtid import render_gtids
from penstock.binlog.events.layout import Entry
from penstock.binlog.events.table_map import table_name
from penstock.binlog.gather import take_texts
from penstock.binlog.rows.decode import Rows, decode_rows
from penstock.binlog.rows.located import ABSENT, UNKNOWN
from penstock.binlog.values.column import DecodeOptions
from penstock.errors import BinlogError, SchemaError
from penstock.model import ChangeKind, Column, Position, TableName, TableSchema
from penstock.model.sequence import FILE_SHIFT, MAX_FILE, MAX_OFFSET

if TYPE_CHECKING:
    from penstock.binlog.values.json_operations import JsonOperations

ShapeOf = Callable[[Block, int], TableSchema]  # of a table id in a block
_DECODING = DecodeOptions(dates="text")
_THERE, _AS_OPERATIONS = 0, 2


class RowChangeKind(Enum):
    """The kind of a row change as renderers show it: insert, update or delete."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class ColumnChoice:
    """Says which columns are shown, by default all, and remembers which of the names to leave out were met. Several
    threads may ask it at the same time: names are only ever added.

        choice = ColumnChoice(without=("password",))
        choice.names(table)  # ["id", "name"]
    """

    def __init__(self, only: Sequence[str] = (), without: Sequence[str] = ()) -> None:
        """`without` has names of columns for every table, or `database.table.column` for one."""
        self._only, self._without = frozenset(only), tuple(without)
        self._met: set[str] = set()  # those to leave out that a table had

    def names(self, table: TableSchema) -> list[str]:
        """Return the names of the columns of a table that are shown; raise SchemaError when none is left."""
        known = [column.name for column in table.declared_columns]
        chosen = [name for name in known if not self.leaves_out(table, name) and (not self._only or name in self._only)]
        if not chosen:
            raise SchemaError(
                f"nothing is left of table {table.name}, which has the columns {', '.join(known)}: name one of these"
            )
        return chosen

    def leaves_out(self, table: TableSchema, column: str) -> bool:
        """Return whether a column is left out by name."""
        matches = {column, f"{table.name}.{column}"}.intersection(self._without)
        self._met.update(matches)
        return bool(matches)

    @property
    def unmatched_names(self) -> list[str]:
        """Return the names of columns to leave out that no table had: likely they are misspelt."""
        return [name for name in self._without if name not in self._met]


@dataclass(frozen=True, slots=True, eq=False)
class RowImages:
    """All row images of one version of a table in a block, and what renderers have made of their columns."""

    columns: dict[str, pa.Array]
    operations: "dict[str, JsonOperations]"  # on documents that the log does not have, by column
    written: dict[Any, Any] = field(default_factory=dict[Any, Any])


@dataclass(frozen=True, slots=True, eq=False)
class TableChanges:
    """Changes of one kind in one table whose images carry the same columns: change i has the before image
    first[i] and the after image last[i]; of inserts and deletes, which have one image, both are that one."""

    block: Block
    table: TableSchema
    kind: RowChangeKind
    images: RowImages
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    before: tuple[Column, ...]  # what the image before the change carries; nothing for an insert
    after: tuple[Column, ...]  # and the one after it; nothing for a delete
    partial: tuple[Column, ...]  # of which the image after it has only operations on a document that nobody knows
    shown: tuple[str, ...]  # columns to show; the images may carry those of the key besides
    event: NDArray[np.int64]  # index of each change's event in the block
    number: NDArray[np.int64]  # of its last image in that event
    offset: NDArray[np.int64]  # of its last image in the file
    first_offset: NDArray[np.int64]  # and of its first

    def __len__(self) -> int:
        return self.event.size

    def shown_of(self, columns: tuple[Column, ...]) -> list[Column]:
        """Return those of these columns that the user wants in the output."""
        return [column for column in columns if column.name in self.shown]

    def key_of(self, columns: tuple[Column, ...]) -> list[Column]:
        """Return the primary key, if the log knows it and these columns have all of it."""
        by_name = {column.name: column for column in columns}
        return [by_name[name] for name in self.table.key] if all(name in by_name for name in self.table.key) else []

    @property
    def order(self) -> NDArray[np.int64]:
        """Return numbers that rise with the log, over all tables of the block."""
        return self.event << 32 | self.number

    @property
    def sequence(self) -> NDArray[np.int64]:
        """Return the `_seq` of the last images."""
        return self.sequence_of(self.offset)

    def sequence_of(self, offset: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the `_seq` of images at these file offsets, without the epoch; raise BinlogError for a log that is too
        large."""
        number, last = Position(self.block.file, 0).file_number, int(offset.max(initial=0))
        if number > MAX_FILE or last > MAX_OFFSET:
            raise BinlogError(
                f"{self.block.file}:{last} has no `_seq`: it counts {MAX_FILE} files of {(MAX_OFFSET + 1) >> 30} GiB;"
                " split the largest transactions, or start a new log with RESET MASTER"
            )
        return number << FILE_SHIFT | offset

    @property
    def has_before(self) -> bool:
        """Return whether there is an image before the change, even one that carries none of the columns."""
        return self.kind is not RowChangeKind.INSERT

    @property
    def has_after(self) -> bool:
        """Return whether there is an image after the change."""
        return self.kind is not RowChangeKind.DELETE

    @property
    def absent(self) -> list[str]:
        """Return the columns to show that an image does not carry."""
        images = ((self.before, self.has_before), (self.after, self.has_after))
        sides = [{column.name for column in side} for side, is_there in images if is_there]
        return [name for name in self.shown if any(name not in side for side in sides)]


def decode_table_changes(
    block: Block, choice: ColumnChoice, shape_of: ShapeOf, *, finds_rows: bool = False
) -> Iterator[TableChanges]:
    """Yield the changes of all tables, table by table, all versions of one together; `order` tells the order of the
    log.

    To find rows again, the images carry the key besides the columns to show, or all that is not left out by name.
    """
    events = np.flatnonzero(block.column("entry") == Entry.ROWS)
    ids = block.column("table_id")[events]
    for number in _by_table(block, distinct(ids)):
        table = shape_of(block, number)
        shown = choice.names(table)
        others = table.key or [column.name for column in table.declared_columns if finds_rows]
        others = [name for name in others if table.key or not choice.leaves_out(table, name)]
        wanted = [column for column in table.columns if column.name in shown or column.name in others]
        for rows in decode_rows(block, events[ids == number], table, [column.name for column in wanted], _DECODING):
            yield from _split(block, table, tuple(shown), wanted, rows)


def _by_table(block: Block, ids: list[int]) -> list[int]:
    """Return the table ids with all ids of one table together: a table that was altered or flushed gets another id."""
    ids_by_table: dict[TableName, list[int]] = {}
    for number in ids:
        ids_by_table.setdefault(table_name(block.tables[number]), []).append(number)
    return [number for group in ids_by_table.values() for number in group]


def transaction_gtids(block: Block, events: NDArray[Any]) -> pa.Array:
    """Return the GTIDs of the transactions that these events belong to; each transaction is rendered once."""
    _, first, which = np.unique(block.column("transaction")[events], return_index=True, return_inverse=True)
    return take_texts(render_gtids(block.gtids[events[first]], block.tags), which)


def _split(
    block: Block, table: TableSchema, shown: tuple[str, ...], wanted: list[Column], rows: Rows
) -> Iterator[TableChanges]:
    """Yield the changes by kind, and by the columns that the images carry: usually all of them."""
    located = rows.located
    images = RowImages(rows.columns, rows.operations)
    event = rows.events[located.event]
    offset = _offsets(block, event, located.start)
    for kind, first, last in _pairs(located.kind):
        for group, before, after, partial in _groups(rows, wanted, kind, first, last):
            ends = last[group]
            yield TableChanges(
                block,
                table,
                kind,
                images,
                first[group],
                ends,
                before,
                after,
                partial,
                shown,
                event[ends],
                located.number[ends].astype(np.int64),
                offset[ends],
                offset[first[group]],
            )


def _offsets(block: Block, event: NDArray[np.int64], start: NDArray[Any]) -> NDArray[np.int64]:
    """Return the file offset of each image. Images that were compressed have a share of the file instead."""
    _, starts, sizes = block.raw
    inside = start - starts[event]
    return block.column("position")[event] + inside * block.column("span")[event] // sizes[event]


def _pairs(kinds: NDArray[np.uint8]) -> Iterator[tuple[RowChangeKind, NDArray[np.int64], NDArray[np.int64]]]:
    """Yield by kind the first and the last image of each change."""
    for kind, code in ((RowChangeKind.INSERT, ChangeKind.INSERT), (RowChangeKind.DELETE, ChangeKind.DELETE)):
        rows = np.flatnonzero(kinds == code)
        if rows.size:
            yield kind, rows, rows
    rows = np.flatnonzero(kinds == ChangeKind.UPDATE_PREIMAGE)
    if rows.size:
        yield RowChangeKind.UPDATE, rows, rows + 1


def _groups(
    rows: Rows, wanted: list[Column], kind: RowChangeKind, first: NDArray[np.int64], last: NDArray[np.int64]
) -> Iterator[tuple[Any, tuple[Column, ...], tuple[Column, ...], tuple[Column, ...]]]:
    """Yield the changes whose images carry the same columns, and these columns: before, after, and as operations
    only."""
    whole = tuple(wanted)
    if rows.located.is_whole:
        yield (
            slice(None),
            () if kind is RowChangeKind.INSERT else whole,
            () if kind is RowChangeKind.DELETE else whole,
            (),
        )
        return
    offsets = np.stack([rows.located.offsets(line) for line in range(len(wanted))])
    states = (offsets <= ABSENT).astype(np.uint8) + (offsets <= UNKNOWN)
    sides = np.concatenate([states[:, first], states[:, last]])
    patterns, which = np.unique(sides, axis=1, return_inverse=True)
    for k in range(patterns.shape[1]):
        old, new = np.split(patterns[:, k], 2)
        before, after, partial = (
            tuple(column for column, state in zip(wanted, side.tolist(), strict=True) if state == wished)
            for side, wished in ((old, _THERE), (new, _THERE), (new, _AS_OPERATIONS))
        )
        group = np.flatnonzero(which.reshape(-1) == k)
        yield (
            group,
            () if kind is RowChangeKind.INSERT else before,
            () if kind is RowChangeKind.DELETE else after,
            partial,
        )
