"""The log for people: a heading per transaction, a line per change; an update shows its key and what it changed."""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.binlog.arrays import to_arrow_numbers
from penstock.binlog.events.block import Block
from penstock.binlog.events.incident import Incident
from penstock.binlog.events.statement import StatementEvent
from penstock.binlog.rows.table_changes import RowChangeKind, TableChanges
from penstock.binlog.xa.outcome import XaOutcome, XaTransactions
from penstock.model import Column
from penstock.render import text
from penstock.render.dialect import ValueWriter, write_vector_texts
from penstock.render.frame import TransactionFrame, place_texts, write_headings
from penstock.render.operations import describe_operations
from penstock.render.page import LineContext, LineFormat, LineRole, PageLines, format_column, formatted_operations
from penstock.render.weave import ColumnPiece, FormattedColumn, LinePattern, write_lines

if TYPE_CHECKING:
    from penstock.binlog.values.json_operations import JsonOperations

_CONTROLS = {chr(code): f"\\x{code:02x}" for code in (*range(32), 127)}
_ESCAPES = text.EscapeTable.from_mapping(_CONTROLS | {"\n": "\\n", "\r": "\\r", "\t": "\\t", "'": "\\'", "\\": "\\\\"})
_BLANKS = r"[\x00-\x20\x7f]+"
_CUT = 60  # characters of a value
_CUT_NOTE = 200
_CUT_BYTES = 24
_COLOURS = {RowChangeKind.INSERT: "32", RowChangeKind.UPDATE: "33", RowChangeKind.DELETE: "31"}
_DIM, _DDL = "2", "36"


class TerminalValueWriter(ValueWriter):
    """Writes values for people: long texts and bytes are cut."""

    null = "NULL"

    def write_texts(self, array: pa.Array) -> FormattedColumn:
        """Write texts in quotes, long ones cut."""
        return FormattedColumn(text.escape_texts(_shorten(text.write_plain(array)), _ESCAPES), self.null, "'", "'")

    def write_binaries(self, array: pa.Array) -> FormattedColumn:
        """Write bytes as hexadecimal digits, long ones cut."""
        short = text.write_hex(pc.binary_slice(array, 0, _CUT_BYTES))
        is_long = _exceeds(pc.binary_length(array), _CUT_BYTES)
        return FormattedColumn(pc.if_else(is_long, text.join_columns(short, "…"), short), self.null, "0x")

    def write_times(self, array: pa.Array, column: Column) -> FormattedColumn:  # noqa: ARG002 - as the server prints it
        """Write dates and times as the server prints them."""
        return FormattedColumn(text.write_plain(array), self.null)

    def write_documents(self, array: pa.Array) -> FormattedColumn:
        """Write JSON documents, long ones cut."""
        return FormattedColumn(_shorten(text.write_plain(array)), self.null)

    def write_vectors(self, array: pa.Array) -> FormattedColumn:
        """Write vectors in brackets, long ones cut."""
        return FormattedColumn(_shorten(write_vector_texts(array)), self.null, "[", "]")


_VALUES = TerminalValueWriter()


class TerminalFormat(LineFormat):
    """Writes the log for people: a heading per transaction and a line per change."""

    def __init__(self, xa: XaTransactions, *, colours: bool) -> None:
        super().__init__(xa)
        self._colours = colours

    def write_changes(self, changes: TableChanges) -> LinePattern:
        """Return the pieces of a line for each change; an update shows its key and what it changed."""
        start = f"  {self._colour(changes.kind.name, _COLOURS[changes.kind])} {changes.table.name}"
        if changes.kind is RowChangeKind.INSERT:
            return [start, *_all_values(changes, changes.after, changes.last), "\n"]
        if changes.kind is RowChangeKind.DELETE:
            return [start, *_all_values(changes, changes.before, changes.first), "\n"]
        key = _all_values(changes, tuple(changes.key_of(changes.before)), changes.first)
        return [start, *key, *_changed_values(changes), "\n"]

    def write_statement(self, block: Block, statement: StatementEvent) -> str:
        """Return the line of a statement."""
        one_line = " ".join(statement.text.split())
        database = f"{statement.database}: " if statement.database else ""
        head = (
            "" if statement.is_in_transaction else self._write_headings(block, np.array([statement.event]))[0].as_py()
        )
        return f"{head}  {self._colour(f'{database}{one_line}', _DDL)}\n"

    def write_xa_outcome(self, block: Block, event: int, outcome: XaOutcome) -> str:
        """Return the line of the end of a prepared XA transaction."""
        return f"{self._write_headings(block, np.array([event]))[0].as_py()}  {self._colour(outcome.sql, _DDL)}\n"

    def write_incident(self, block: Block, incident: Incident) -> str:
        """Return the line of an INCIDENT event, with which the source says that events may be missing from its binlog
        at this position."""
        head = self._write_headings(block, np.array([incident.event]))[0].as_py()
        return f"{head}  {self._colour(f'INCIDENT: {incident.meaning}', _COLOURS[RowChangeKind.DELETE])}\n"

    def write_notes(self, block: Block, events: NDArray[np.int64], texts: pa.Array) -> LinePattern:  # noqa: ARG002 - only the text
        """Return the pieces of the lines of statements that produced rows."""
        start, end = (f"  \x1b[{_DIM}m# ", "\x1b[0m\n") if self._colours else ("  # ", "\n")
        one_line = pc.replace_substring_regex(texts, _BLANKS, " ")
        return [
            FormattedColumn(_shorten(one_line, _CUT_NOTE), before=start, after=end).pick_rows(np.arange(events.size))
        ]

    def frame_lines(self, page: PageLines, before: LineContext) -> tuple[LinePattern, LinePattern]:
        """Return a heading before the first line of each transaction, and a line such as ROLLBACK after one that does
        not end with COMMIT."""
        frame = TransactionFrame.find_on_page(page, before)
        heads = place_texts(self._write_headings(page.block, page.event[frame.starts]), frame.starts)
        ends, which = [""], np.zeros(len(page), np.int64)
        for i, role, xid in frame.non_commit_ends(page):
            which[i] = len(ends)
            words = {LineRole.ROLLBACK: "ROLLBACK", LineRole.PREPARE: f"XA PREPARE {xid}"}
            ends.append(f"  {self._colour(words.get(role, f'XA COMMIT {xid} ONE PHASE'), _DDL)}\n")
        return (heads,), (FormattedColumn(text.texts_from_list(ends)).pick_rows(which),) if len(ends) > 1 else ()

    def _write_headings(self, block: Block, events: NDArray[np.int64]) -> pa.Array:
        """Return the coloured line above each transaction of these events."""
        start, end = (f"\x1b[{_DIM}m", "\x1b[0m\n") if self._colours else ("", "\n")
        xids = (
            [self.xa.xids.get(begin) for begin in block.column("transaction")[events].tolist()] if self.xa.xids else []
        )
        marks = text.texts_from_list(["" if xid is None else f"  XA {xid}" for xid in xids]) if xids else ""
        return text.join_columns(start, write_headings(block, events), marks, end)

    def _colour(self, word: str, colour: str) -> str:
        """Put a word into the escape codes of a colour, if colours are on."""
        return f"\x1b[{colour}m{word}\x1b[0m" if self._colours else word


def _all_values(changes: TableChanges, columns: tuple[Column, ...], rows: NDArray[np.int64]) -> list[str | ColumnPiece]:
    """Return the pieces that show every column of an image as `name=value`."""
    pieces: list[str | ColumnPiece] = []
    for column in columns:
        pieces += [f"  {column.name}=", format_column(changes, _VALUES, column, rows)]
    return pieces


def _changed_values(changes: TableChanges) -> list[str | ColumnPiece]:
    """Return the pieces that show each changed column as `name: old → new`, and nothing for an unchanged one."""
    pieces: list[str | ColumnPiece] = []
    old = {column.name for column in changes.before}
    every = np.arange(len(changes))
    for column in changes.shown_of(changes.after):
        new = format_column(changes, _VALUES, column, changes.last)
        if column.name not in old:
            pieces += [f"  {column.name}: → ", new]
            continue
        differs = _differs(changes.images.columns[column.name], changes)
        if differs.any():
            both = (format_column(changes, _VALUES, column, changes.first), " → ", new)
            shown = write_lines((f"  {column.name}: ", *both), len(changes))
            pieces.append(
                FormattedColumn(pa.concat_arrays([shown, text.texts_from_list([""])])).pick_rows(
                    np.where(differs, every, every.size)
                )
            )
    for column in changes.shown_of(changes.partial):
        pieces += [f"  {column.name}: ", formatted_operations(changes, _describe_operations, column, changes.last)]
    return pieces


def _describe_operations(operations: "JsonOperations", column: Column) -> pa.Array:  # noqa: ARG001 - it is named outside
    """Describe the partial updates of a JSON column in words."""
    paths = text.escape_texts(operations.paths, _ESCAPES)
    return describe_operations(operations, paths, _shorten(text.write_plain(operations.values)))


def _differs(array: pa.Array, changes: TableChanges) -> NDArray[np.bool_]:
    """Return which changes have another value after them than before."""
    if pa.types.is_nested(array.type):
        array = write_vector_texts(array)
    old, new = (array.take(to_arrow_numbers(rows)) for rows in (changes.first, changes.last))
    same = pc.or_kleene(pc.equal(old, new), pc.and_(pc.is_null(old), pc.is_null(new)))
    bits = np.unpackbits(np.frombuffer(same.buffers()[1], np.uint8), bitorder="little")[: len(same)]
    valid = text.get_validity(same)
    return (bits == 0) | (valid == 0 if valid.size else np.False_)


def _exceeds(sizes: pa.Array, most: int) -> pa.Array:
    """Return which sizes are larger than `most`."""
    return pc.greater(sizes, to_arrow_numbers(np.array([most], np.int32))[0])


def _shorten(texts: pa.Array, most: int = _CUT) -> pa.Array:
    """Cut texts longer than `most` characters, and end them with an ellipsis."""
    is_long = _exceeds(pc.utf8_length(texts), most)
    if not pc.any(is_long).as_py():
        return texts
    return pc.if_else(is_long, text.join_columns(pc.utf8_slice_codeunits(texts, 0, most), "…"), texts)
