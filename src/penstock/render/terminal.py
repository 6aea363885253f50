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
from penstock.render.dialect import Dialect, vector_texts
from penstock.render.frame import Frame, heading, placed
from penstock.render.operations import list_words
from penstock.render.page import LineContext, LineFormat, Page, Role, operations, values
from penstock.render.weave import Chosen, Line, Written, weave

if TYPE_CHECKING:
    from penstock.binlog.values.json_operations import JsonOperations

_CONTROLS = {chr(code): f"\\x{code:02x}" for code in (*range(32), 127)}
_ESCAPES = text.Escapes.of(_CONTROLS | {"\n": "\\n", "\r": "\\r", "\t": "\\t", "'": "\\'", "\\": "\\\\"})
_BLANKS = r"[\x00-\x20\x7f]+"
_CUT = 60  # characters of a value
_CUT_NOTE = 200
_CUT_BYTES = 24
_COLOURS = {RowChangeKind.INSERT: "32", RowChangeKind.UPDATE: "33", RowChangeKind.DELETE: "31"}
_DIM, _DDL = "2", "36"


class TerminalValues(Dialect):
    null = "NULL"

    def text(self, array: pa.Array) -> Written:
        return Written(text.escaped(_shortened(text.plain(array)), _ESCAPES), self.null, "'", "'")

    def binary(self, array: pa.Array) -> Written:
        short = text.hexed(pc.binary_slice(array, 0, _CUT_BYTES))
        is_long = _exceeds(pc.binary_length(array), _CUT_BYTES)
        return Written(pc.if_else(is_long, text.join(short, "…"), short), self.null, "0x")

    def moment(self, array: pa.Array, column: Column) -> Written:  # noqa: ARG002 - as the server prints it
        return Written(text.plain(array), self.null)

    def document(self, array: pa.Array) -> Written:
        return Written(_shortened(text.plain(array)), self.null)

    def vector(self, array: pa.Array) -> Written:
        return Written(_shortened(vector_texts(array)), self.null, "[", "]")


_VALUES = TerminalValues()


class TerminalLines(LineFormat):
    def __init__(self, xa: XaTransactions, *, colours: bool) -> None:
        super().__init__(xa)
        self._colours = colours

    def changes(self, changes: TableChanges) -> Line:
        start = f"  {self._coloured(changes.kind.name, _COLOURS[changes.kind])} {changes.table.name}"
        if changes.kind is RowChangeKind.INSERT:
            return [start, *_all(changes, changes.after, changes.last), "\n"]
        if changes.kind is RowChangeKind.DELETE:
            return [start, *_all(changes, changes.before, changes.first), "\n"]
        key = _all(changes, tuple(changes.key_of(changes.before)), changes.first)
        return [start, *key, *_changed(changes), "\n"]

    def statement(self, block: Block, statement: StatementEvent) -> str:
        one_line = " ".join(statement.text.split())
        place = f"{statement.database}: " if statement.database else ""
        head = "" if statement.is_in_transaction else self._heading(block, np.array([statement.event]))[0].as_py()
        return f"{head}  {self._coloured(f'{place}{one_line}', _DDL)}\n"

    def outcome(self, block: Block, event: int, outcome: XaOutcome) -> str:
        return f"{self._heading(block, np.array([event]))[0].as_py()}  {self._coloured(outcome.sql, _DDL)}\n"

    def incident(self, block: Block, incident: Incident) -> str:
        head = self._heading(block, np.array([incident.event]))[0].as_py()
        return f"{head}  {self._coloured(f'INCIDENT: {incident.meaning}', _COLOURS[RowChangeKind.DELETE])}\n"

    def notes(self, block: Block, events: NDArray[np.int64], texts: pa.Array) -> Line:  # noqa: ARG002 - only the text
        start, end = (f"  \x1b[{_DIM}m# ", "\x1b[0m\n") if self._colours else ("  # ", "\n")
        one_line = pc.replace_substring_regex(texts, _BLANKS, " ")
        return [Written(_shortened(one_line, _CUT_NOTE), before=start, after=end).at(np.arange(events.size))]

    def frame(self, page: Page, before: LineContext) -> tuple[Line, Line]:
        frame = Frame.of(page, before)
        heads = placed(self._heading(page.block, page.event[frame.starts]), frame.starts)
        ends, which = [""], np.zeros(len(page), np.int64)
        for i, role, xid in frame.unusual_ends(page):
            which[i] = len(ends)
            words = {Role.ROLLBACK: "ROLLBACK", Role.PREPARE: f"XA PREPARE {xid}"}
            ends.append(f"  {self._coloured(words.get(role, f'XA COMMIT {xid} ONE PHASE'), _DDL)}\n")
        return (heads,), (Written(text.of_list(ends)).at(which),) if len(ends) > 1 else ()

    def _heading(self, block: Block, events: NDArray[np.int64]) -> pa.Array:
        start, end = (f"\x1b[{_DIM}m", "\x1b[0m\n") if self._colours else ("", "\n")
        xids = (
            [self.xa.xids.get(begin) for begin in block.column("transaction")[events].tolist()] if self.xa.xids else []
        )
        marks = text.of_list(["" if xid is None else f"  XA {xid}" for xid in xids]) if xids else ""
        return text.join(start, heading(block, events), marks, end)

    def _coloured(self, word: str, colour: str) -> str:
        return f"\x1b[{colour}m{word}\x1b[0m" if self._colours else word


def _all(changes: TableChanges, columns: tuple[Column, ...], rows: NDArray[np.int64]) -> list[str | Chosen]:
    pieces: list[str | Chosen] = []
    for column in columns:
        pieces += [f"  {column.name}=", values(changes, _VALUES, column, rows)]
    return pieces


def _changed(changes: TableChanges) -> list[str | Chosen]:
    """Per column `name: old → new`; nothing where the value is the same."""
    pieces: list[str | Chosen] = []
    old = {column.name for column in changes.before}
    every = np.arange(len(changes))
    for column in changes.shown_of(changes.after):
        new = values(changes, _VALUES, column, changes.last)
        if column.name not in old:
            pieces += [f"  {column.name}: → ", new]
            continue
        differs = _differs(changes.images.columns[column.name], changes)
        if differs.any():
            both = (values(changes, _VALUES, column, changes.first), " → ", new)
            shown = weave((f"  {column.name}: ", *both), len(changes))
            pieces.append(
                Written(pa.concat_arrays([shown, text.of_list([""])])).at(np.where(differs, every, every.size))
            )
    for column in changes.shown_of(changes.partial):
        pieces += [f"  {column.name}: ", operations(changes, _list_words, column, changes.last)]
    return pieces


def _list_words(found: "JsonOperations", column: Column) -> pa.Array:  # noqa: ARG001 - it is named outside
    paths = text.escaped(found.paths, _ESCAPES)
    return list_words(found, paths, _shortened(text.plain(found.values)))


def _differs(array: pa.Array, changes: TableChanges) -> NDArray[np.bool_]:
    """Where the image after a change has another value than the one before it."""
    if pa.types.is_nested(array.type):
        array = vector_texts(array)
    old, new = (array.take(to_arrow_numbers(rows)) for rows in (changes.first, changes.last))
    same = pc.or_kleene(pc.equal(old, new), pc.and_(pc.is_null(old), pc.is_null(new)))
    bits = np.unpackbits(np.frombuffer(same.buffers()[1], np.uint8), bitorder="little")[: len(same)]
    valid = text.validity(same)
    return (bits == 0) | (valid == 0 if valid.size else np.False_)


def _exceeds(sizes: pa.Array, most: int) -> pa.Array:
    return pc.greater(sizes, to_arrow_numbers(np.array([most], np.int32))[0])


def _shortened(texts: pa.Array, most: int = _CUT) -> pa.Array:
    """Long texts end in … ."""
    is_long = _exceeds(pc.utf8_length(texts), most)
    if not pc.any(is_long).as_py():
        return texts
    return pc.if_else(is_long, text.join(pc.utf8_slice_codeunits(texts, 0, most), "…"), texts)
