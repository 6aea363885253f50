"""The changes of one table as CSV: a line per row image, the table's columns first, then where it is from.

Texts and bytes, which are base64, are in double quotes, so that an empty one differs from NULL, which is nothing at
all. A column that the image does not carry is nothing too, and named in `_absent`; `_partial` has the
operations on JSON documents that the log does not have.
"""

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import to_arrow_numbers
from penstock.binlog.events.block import Block
from penstock.binlog.rows.fields import choose_free_names
from penstock.binlog.rows.table_changes import RowChangeKind, TableChanges, transaction_gtids
from penstock.model import Column
from penstock.render import text
from penstock.render.dialect import Dialect, vector_texts
from penstock.render.json_lines import JSON_ESCAPES
from penstock.render.operations import list_objects
from penstock.render.page import RowFormat, operations, values
from penstock.render.times import iso_text
from penstock.render.weave import Chosen, Line, Written, weave

if TYPE_CHECKING:
    from penstock.binlog.values.json_operations import JsonOperations

ABOUT = ("_change_type", "_seq", "_commit_timestamp", "_gtid", "_file", "_offset", "_absent", "_partial")
_ESCAPES = text.Escapes.of({'"': '""'})


class CsvValues(Dialect):
    null = ""

    def text(self, array: pa.Array) -> Written:
        return Written(text.escaped(array, _ESCAPES), self.null, '"', '"')

    def binary(self, array: pa.Array) -> Written:
        return Written(text.base64ed(array), self.null, '"', '"')

    def moment(self, array: pa.Array, column: Column) -> Written:  # noqa: ARG002 - needs no quotes
        return Written(text.plain(array), self.null)

    def vector(self, array: pa.Array) -> Written:
        return Written(text.escaped(vector_texts(array), _ESCAPES), self.null, '"[', ']"')


_VALUES = CsvValues()


class EventAbouts:
    """When and where the events of a block are; the tables of the block share it."""

    def __init__(self) -> None:
        self._block: Block | None = None
        self._texts = Written(text.of_list([]))

    def of(self, block: Block) -> Written:
        if self._block is not block:
            every = np.arange(len(block))
            line = (
                ",",
                Written(iso_text(block.column("commit_us"))).at(every),
                Written(text.plain(transaction_gtids(block, every)), ",", ",").at(every),
                f",{_cell(block.file)},",
            )
            self._block, self._texts = block, Written(weave(line, len(block)))
        return self._texts


class CsvLines(RowFormat):
    """Of one version of one table; `columns` are those to show."""

    def __init__(self, columns: tuple[str, ...], abouts: EventAbouts) -> None:
        self._columns = columns
        self._abouts = abouts

    def begin(self) -> str:
        return ",".join(map(_cell, (*self._columns, *choose_free_names(ABOUT, self._columns)))) + "\n"

    def changes(self, changes: TableChanges) -> Line:
        sides = [
            (changes.has_before, changes.before, changes.first, changes.first_offset),
            (changes.has_after, changes.after, changes.last, changes.offset),
        ]
        kinds = (
            ["update_preimage", "update_postimage"]
            if changes.kind is RowChangeKind.UPDATE
            else [changes.kind.value] * 2
        )
        pieces: list[str | Chosen] = []
        for kind, (is_there, columns, rows, offset) in zip(kinds, sides, strict=True):
            if is_there:
                pieces += [*self._image(changes, columns, rows), f"{kind},", *self._about(changes, columns, offset)]
                # What is partial is so in the image after the change, which is the last.
                pieces += [",", *(_partial(changes, self._columns) if rows is changes.last else ()), "\n"]
        return pieces

    def _image(self, changes: TableChanges, columns: tuple[Column, ...], rows: NDArray[np.int64]) -> Line:
        by_name = {column.name: column for column in columns}
        pieces: list[str | Chosen] = []
        for name in self._columns:
            pieces += [values(changes, _VALUES, by_name[name], rows), ","] if name in by_name else [","]
        return pieces

    def _about(self, changes: TableChanges, columns: tuple[Column, ...], offset: NDArray[np.int64]) -> Line:
        every = np.arange(len(changes))
        there = {column.name for column in columns}
        absent = [name for name in self._columns if name not in there]
        return (
            Written(text.plain(to_arrow_numbers(changes.sequence_of(offset)))).at(every),
            self._abouts.of(changes.block).at(changes.event),
            Written(text.plain(to_arrow_numbers(offset))).at(every),
            f",{_cell(json.dumps(absent, ensure_ascii=False, separators=(',', ':'))) if absent else ''}",
        )


def _partial(changes: TableChanges, columns: tuple[str, ...]) -> Line:
    """The operations on documents that the log does not have, as a JSON array."""
    pieces: list[str | Chosen] = []
    for column in changes.partial:
        if column.name in columns:
            pieces += [",", operations(changes, _list_objects, column, changes.last)]
    return ['"[', *pieces[1:], ']"'] if pieces else ()


def _list_objects(found: "JsonOperations", column: Column) -> pa.Array:
    name = f'"column":{json.dumps(column.name, ensure_ascii=False)},'
    return text.escaped(list_objects(found, text.escaped(found.paths, JSON_ESCAPES), name), _ESCAPES)


def _cell(text_: str) -> str:
    return '"' + text_.replace('"', '""') + '"' if set(text_) & set(',"\n\r') else text_
