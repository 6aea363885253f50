"""The log as JSON lines: one object per change.

Numbers are exact, as long as the reader takes 64-bit integers; decimals are strings; bytes are base64; dates are
ISO 8601, TIMESTAMP with a Z; a JSON document of MySQL is a value of its own. A column that the log does not carry is
not there; a NULL is null. A JSON document of which the log has neither the old nor the new text is no column of the
image: `partial` has the operations that change it.
"""

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import to_arrow_numbers
from penstock.binlog.events.block import Block
from penstock.binlog.events.incident import Incident
from penstock.binlog.events.statement import StatementEvent
from penstock.binlog.rows.table_changes import TableChanges, transaction_gtids
from penstock.binlog.xa.outcome import XaOutcome, XaTransactions
from penstock.model import Column, WireType
from penstock.render import text
from penstock.render.dialect import ValueWriter, write_json_floats, write_vector_texts
from penstock.render.frame import TransactionFrame
from penstock.render.operations import write_operation_objects
from penstock.render.page import LineContext, LineFormat, LineRole, PageLines, format_column, formatted_operations
from penstock.render.times import write_iso_times
from penstock.render.weave import ColumnPiece, FormattedColumn, LinePattern, write_lines

if TYPE_CHECKING:
    from penstock.binlog.values.json_operations import JsonOperations

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f", '"': '\\"', "\\": "\\\\"}
JSON_ESCAPES = text.EscapeTable.from_mapping({chr(code): f"\\u{code:04x}" for code in range(32)} | _SHORT)
_INSTANTS = {WireType.TIMESTAMP, WireType.TIMESTAMP2}
_WITH_CLOCK = {*_INSTANTS, WireType.DATETIME, WireType.DATETIME2}
_DATE_CHARACTERS = 10
_ENDS = {LineRole.ROLLBACK: "rollback", LineRole.PREPARE: "prepare", LineRole.ONE_PHASE: "commit"}


class JsonValueWriter(ValueWriter):
    """Writes values as JSON."""

    null = "null"

    def write_decimals(self, array: pa.Array) -> FormattedColumn:
        """Write decimals as JSON strings, so that no digit is lost."""
        return FormattedColumn(text.write_decimals(array), self.null, '"', '"')

    def write_floats(self, array: pa.Array) -> FormattedColumn:
        """Write floats as JSON numbers."""
        return FormattedColumn(write_json_floats(array), self.null)

    def write_texts(self, array: pa.Array) -> FormattedColumn:
        """Write texts as JSON strings."""
        return FormattedColumn(text.escape_texts(array, JSON_ESCAPES), self.null, '"', '"')

    def write_binaries(self, array: pa.Array) -> FormattedColumn:
        """Write bytes as base64 in a JSON string."""
        return FormattedColumn(text.write_base64(array), self.null, '"', '"')

    def write_times(self, array: pa.Array, column: Column) -> FormattedColumn:
        """Write dates and times as ISO 8601; TIMESTAMP has a Z."""
        texts = (
            text.replace_byte(array, _DATE_CHARACTERS, "T") if column.type in _WITH_CLOCK else text.write_plain(array)
        )
        return FormattedColumn(texts, self.null, '"', 'Z"' if column.type in _INSTANTS else '"')

    def write_documents(self, array: pa.Array) -> FormattedColumn:
        """Write JSON documents as they are."""
        return FormattedColumn(text.write_plain(array), self.null)

    def write_vectors(self, array: pa.Array) -> FormattedColumn:
        """Write vectors as JSON arrays."""
        return FormattedColumn(write_vector_texts(array), self.null, "[", "]")


_VALUES = JsonValueWriter()


class JsonLineFormat(LineFormat):
    """Formats binlog events as JSON lines: one object per row change, SQL statement, annotation or INCIDENT event."""

    def __init__(self, xa: XaTransactions) -> None:
        super().__init__(xa)
        self._block: Block | None = None
        self._abouts = FormattedColumn(text.texts_from_list([]))

    def write_changes(self, changes: TableChanges) -> LinePattern:
        """Return the pieces of a JSON object for each change."""
        return [
            f'{{"table":{_quote(str(changes.table.name))},"type":"{changes.kind.value}","ts":',
            self._write_metadata(changes.block).pick_rows(changes.event),
            FormattedColumn(text.write_plain(to_arrow_numbers(changes.sequence)), before='"seq":').pick_rows(
                np.arange(len(changes))
            ),
            *_write_key(changes),
            *(
                _write_image("before", changes, changes.shown_of(changes.before), changes.first)
                if changes.has_before
                else ()
            ),
            *(
                _write_image("after", changes, changes.shown_of(changes.after), changes.last)
                if changes.has_after
                else ()
            ),
            *_write_partial(changes),
            "}\n",
        ]

    def write_statement(self, block: Block, statement: StatementEvent) -> str:
        """Return a statement as a JSON object."""
        kind = "statement" if statement.is_in_transaction else "ddl"
        return _write_object(block, statement.event, kind, database=statement.database, sql=statement.text)

    def write_xa_outcome(self, block: Block, event: int, outcome: XaOutcome) -> str:
        """Return the end of a prepared XA transaction as a JSON object."""
        return _write_object(block, event, "commit" if outcome.is_commit else "rollback", xid=outcome.xid)

    def write_incident(self, block: Block, incident: Incident) -> str:
        """Return an INCIDENT event, with which the source says that events may be missing from its binlog at this
        position, as a JSON object."""
        return _write_object(block, incident.event, "incident", message=incident.message, meaning=incident.meaning)

    def write_notes(self, block: Block, events: NDArray[np.int64], texts: pa.Array) -> LinePattern:
        """Return the pieces of JSON objects of statements that produced rows."""
        every = np.arange(events.size)
        sql = FormattedColumn(text.escape_texts(texts, JSON_ESCAPES), before='"sql":"', after='"}\n')
        return ['{"type":"query","ts":', self._write_metadata(block).pick_rows(events), sql.pick_rows(every)]

    def frame_lines(self, page: PageLines, before: LineContext) -> tuple[LinePattern, LinePattern]:
        """Return the text before and after each line. There is none, except where a transaction ends otherwise than
        with COMMIT: there a JSON object says that it ends with a rollback or an XA statement."""
        frame = TransactionFrame.find_on_page(page, before)
        texts, which = [""], np.zeros(len(page), np.int64)
        for i, role, xid in frame.non_commit_ends(page):
            which[i] = len(texts)
            texts.append(_write_object(page.block, int(page.event[i]), _ENDS[role], xid=xid))
        return (), (FormattedColumn(text.texts_from_list(texts)).pick_rows(which),) if len(texts) > 1 else ()

    def _write_metadata(self, block: Block) -> FormattedColumn:
        """Write the time, GTID and position of each event of a block, once per block."""
        if self._block is not block:
            every = np.arange(len(block))
            gtid = FormattedColumn(text.write_plain(transaction_gtids(block, every)), "null", '"', '"')
            line = (
                FormattedColumn(write_iso_times(block.column("commit_us")), "null", '"', '"').pick_rows(every),
                ',"gtid":',
                gtid.pick_rows(every),
                *self._write_xids(block),
                f',"file":{_quote(block.file)},"pos":',
                FormattedColumn(text.write_plain(to_arrow_numbers(block.column("position"))), after=",").pick_rows(
                    every
                ),
            )
            self._block, self._abouts = block, FormattedColumn(write_lines(line, len(block)))
        return self._abouts

    def _write_xids(self, block: Block) -> LinePattern:
        """Return the pieces with the ids of the XA transactions that the events belong to."""
        if not self.xa.xids:
            return ()
        begins, which = np.unique(block.column("transaction"), return_inverse=True)
        xids = [self.xa.xids.get(begin) for begin in begins.tolist()]
        return (
            FormattedColumn(
                text.texts_from_list(["" if xid is None else f',"xa":{_quote(xid)}' for xid in xids])
            ).pick_rows(which),
        )


def _write_object(block: Block, event: int, kind: str, *, xid: str = "", **members: str) -> str:
    """Return a JSON line that is not a change."""
    at = np.array([event])
    head = {
        "type": kind,
        "ts": write_iso_times(block.column("commit_us")[at])[0].as_py(),
        "gtid": transaction_gtids(block, at)[0].as_py(),
        **({"xa": xid} if xid else {}),
        "file": block.file,
        "pos": int(block.column("position")[event]),
        **members,
    }
    return json.dumps(head, ensure_ascii=False, separators=(",", ":")) + "\n"


def _write_key(changes: TableChanges) -> list[str | ColumnPiece]:
    """Return the pieces of the key of the newest row; with minimal images the row after an update has only what it
    changed of the key.
    """
    values = {column.name: (column, changes.first) for column in changes.before}
    values |= {column.name: (column, changes.last) for column in changes.after}
    if not changes.table.key or any(name not in values for name in changes.table.key):
        return []
    return _write_members("key", changes, [values[name] for name in changes.table.key])


def _write_image(
    name: str, changes: TableChanges, columns: list[Column], rows: NDArray[np.int64]
) -> list[str | ColumnPiece]:
    """Return the pieces of a row image as a JSON member."""
    return _write_members(name, changes, [(column, rows) for column in columns])


def _write_partial(changes: TableChanges) -> list[str | ColumnPiece]:
    """Return the pieces of the operations on JSON documents that the log does not contain."""
    pieces: list[str | ColumnPiece] = []
    for column in changes.shown_of(changes.partial):
        start = "]," if pieces else ',"partial":{'
        pieces += [
            f"{start}{_quote(column.name)}:[",
            formatted_operations(changes, _write_operation_objects, column, changes.last),
        ]
    return [*pieces, "]}"] if pieces else []


def _write_operation_objects(operations: "JsonOperations", column: Column) -> pa.Array:  # noqa: ARG001 - it is named outside
    """Write the JSON operations of a column as JSON objects."""
    return write_operation_objects(operations, text.escape_texts(operations.paths, JSON_ESCAPES))


def _write_members(
    name: str, changes: TableChanges, members: list[tuple[Column, NDArray[np.int64]]]
) -> list[str | ColumnPiece]:
    """Return the pieces of a JSON object with these columns, each from its own rows."""
    pieces: list[str | ColumnPiece] = []
    for column, rows in members:
        start = "," if pieces else f',"{name}":{{'
        pieces += [f"{start}{_quote(column.name)}:", format_column(changes, _VALUES, column, rows)]
    return [*pieces, "}"] if pieces else [f',"{name}":{{}}']


def _quote(name: str) -> str:
    """Return a name as a JSON string."""
    return json.dumps(name, ensure_ascii=False)
