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
from penstock.render.dialect import ValueWriter, write_vector_texts
from penstock.render.json_lines import JSON_ESCAPES
from penstock.render.operations import write_operation_objects
from penstock.render.page import RowFormat, format_column, formatted_operations
from penstock.render.times import write_iso_times
from penstock.render.weave import ColumnPiece, FormattedColumn, LinePattern, write_lines

if TYPE_CHECKING:
    from penstock.binlog.values.json_operations import JsonOperations

METADATA_COLUMNS = ("_change_type", "_seq", "_commit_timestamp", "_gtid", "_file", "_offset", "_absent", "_partial")
_ESCAPES = text.EscapeTable.from_mapping({'"': '""'})


class CsvValueWriter(ValueWriter):
    """Writes values as CSV fields."""

    null = ""

    def write_texts(self, array: pa.Array) -> FormattedColumn:
        """Write texts in double quotes."""
        return FormattedColumn(text.escape_texts(array, _ESCAPES), self.null, '"', '"')

    def write_binaries(self, array: pa.Array) -> FormattedColumn:
        """Write bytes as base64 in double quotes."""
        return FormattedColumn(text.write_base64(array), self.null, '"', '"')

    def write_times(self, array: pa.Array, column: Column) -> FormattedColumn:  # noqa: ARG002 - needs no quotes
        """Write dates and times without quotes."""
        return FormattedColumn(text.write_plain(array), self.null)

    def write_vectors(self, array: pa.Array) -> FormattedColumn:
        """Write vectors as a JSON array in double quotes."""
        return FormattedColumn(text.escape_texts(write_vector_texts(array), _ESCAPES), self.null, '"[', ']"')


_VALUES = CsvValueWriter()


class EventMetadataTexts:
    """Writes commit time, GTID and file of the events of a block once for all tables of the block."""

    def __init__(self) -> None:
        self._block: Block | None = None
        self._texts = FormattedColumn(text.texts_from_list([]))

    def format_block(self, block: Block) -> FormattedColumn:
        """Return the texts of the events of a block; those of the last block are cached."""
        if self._block is not block:
            rows = np.arange(len(block))
            line = (
                ",",
                FormattedColumn(write_iso_times(block.column("commit_us"))).pick_rows(rows),
                FormattedColumn(text.write_plain(transaction_gtids(block, rows)), ",", ",").pick_rows(rows),
                f",{quote_cell(block.file)},",
            )
            self._block, self._texts = block, FormattedColumn(write_lines(line, len(block)))
        return self._texts


class CsvFormat(RowFormat):
    """Writes the changes of one version of one table as CSV; `columns` are the columns to show."""

    def __init__(self, columns: tuple[str, ...], abouts: EventMetadataTexts) -> None:
        self._columns = columns
        self._abouts = abouts

    def write_begin(self) -> str:
        """Return the line with the names of the columns."""
        return ",".join(map(quote_cell, (*self._columns, *choose_free_names(METADATA_COLUMNS, self._columns)))) + "\n"

    def write_changes(self, changes: TableChanges) -> LinePattern:
        """Return the pieces of a line for each row image of each change."""
        sides = [
            (changes.has_before, changes.before, changes.first, changes.first_offset),
            (changes.has_after, changes.after, changes.last, changes.offset),
        ]
        kinds = (
            ["update_preimage", "update_postimage"]
            if changes.kind is RowChangeKind.UPDATE
            else [changes.kind.value] * 2
        )
        pieces: list[str | ColumnPiece] = []
        for kind, (is_there, columns, rows, offset) in zip(kinds, sides, strict=True):
            if is_there:
                pieces += [
                    *self._write_image(changes, columns, rows),
                    f"{kind},",
                    *self._write_metadata(changes, columns, offset),
                ]
                # What is partial is so in the image after the change, which is the last.
                pieces += [",", *(_write_partial(changes, self._columns) if rows is changes.last else ()), "\n"]
        return pieces

    def _write_image(self, changes: TableChanges, columns: tuple[Column, ...], rows: NDArray[np.int64]) -> LinePattern:
        """Return the pieces of the table's own columns."""
        by_name = {column.name: column for column in columns}
        pieces: list[str | ColumnPiece] = []
        for name in self._columns:
            pieces += [format_column(changes, _VALUES, by_name[name], rows), ","] if name in by_name else [","]
        return pieces

    def _write_metadata(
        self, changes: TableChanges, columns: tuple[Column, ...], offset: NDArray[np.int64]
    ) -> LinePattern:
        """Return the pieces of the columns after the table's own: sequence, time, GTID, position and absent columns."""
        rows = np.arange(len(changes))
        present = {column.name for column in columns}
        absent = [name for name in self._columns if name not in present]
        return (
            FormattedColumn(text.write_plain(to_arrow_numbers(changes.sequence_of(offset)))).pick_rows(rows),
            self._abouts.format_block(changes.block).pick_rows(changes.event),
            FormattedColumn(text.write_plain(to_arrow_numbers(offset))).pick_rows(rows),
            f",{quote_cell(json.dumps(absent, ensure_ascii=False, separators=(',', ':'))) if absent else ''}",
        )


def _write_partial(changes: TableChanges, columns: tuple[str, ...]) -> LinePattern:
    """Return the pieces of the operations on JSON documents that the log does not contain, as a JSON array."""
    pieces: list[str | ColumnPiece] = []
    for column in changes.partial:
        if column.name in columns:
            pieces += [",", formatted_operations(changes, _write_operation_objects, column, changes.last)]
    return ['"[', *pieces[1:], ']"'] if pieces else ()


def _write_operation_objects(operations: "JsonOperations", column: Column) -> pa.Array:
    """Write the JSON operations of a column as JSON objects inside a CSV field."""
    name = f'"column":{json.dumps(column.name, ensure_ascii=False)},'
    return text.escape_texts(
        write_operation_objects(operations, text.escape_texts(operations.paths, JSON_ESCAPES), name), _ESCAPES
    )


def quote_cell(text_: str) -> str:
    """Return a CSV field, in quotes if it contains a comma, a quote or a line end."""
    return '"' + text_.replace('"', '""') + '"' if set(text_) & set(',"\n\r') else text_
