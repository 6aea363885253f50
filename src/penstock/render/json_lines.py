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
from penstock.render.dialect import Dialect, real_texts, vector_texts
from penstock.render.frame import Frame
from penstock.render.operations import list_objects
from penstock.render.page import LineContext, LineFormat, Page, Role, operations, values
from penstock.render.times import iso_text
from penstock.render.weave import Chosen, Line, Written, weave

if TYPE_CHECKING:
    from penstock.binlog.values.json_operations import JsonOperations

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f", '"': '\\"', "\\": "\\\\"}
JSON_ESCAPES = text.Escapes.of({chr(code): f"\\u{code:04x}" for code in range(32)} | _SHORT)
_INSTANTS = {WireType.TIMESTAMP, WireType.TIMESTAMP2}
_WITH_CLOCK = {*_INSTANTS, WireType.DATETIME, WireType.DATETIME2}
_DATE_CHARACTERS = 10
_ENDS = {Role.ROLLBACK: "rollback", Role.PREPARE: "prepare", Role.ONE_PHASE: "commit"}


class JsonValues(Dialect):
    null = "null"

    def decimal(self, array: pa.Array) -> Written:
        return Written(text.decimals(array), self.null, '"', '"')

    def real(self, array: pa.Array) -> Written:
        return Written(real_texts(array), self.null)

    def text(self, array: pa.Array) -> Written:
        return Written(text.escaped(array, JSON_ESCAPES), self.null, '"', '"')

    def binary(self, array: pa.Array) -> Written:
        return Written(text.base64ed(array), self.null, '"', '"')

    def moment(self, array: pa.Array, column: Column) -> Written:
        texts = text.with_byte(array, _DATE_CHARACTERS, "T") if column.type in _WITH_CLOCK else text.plain(array)
        return Written(texts, self.null, '"', 'Z"' if column.type in _INSTANTS else '"')

    def document(self, array: pa.Array) -> Written:
        return Written(text.plain(array), self.null)

    def vector(self, array: pa.Array) -> Written:
        return Written(vector_texts(array), self.null, "[", "]")


_VALUES = JsonValues()


class JsonLines(LineFormat):
    def __init__(self, xa: XaTransactions) -> None:
        super().__init__(xa)
        self._block: Block | None = None
        self._abouts = Written(text.of_list([]))

    def changes(self, changes: TableChanges) -> Line:
        return [
            f'{{"table":{_quoted(str(changes.table.name))},"type":"{changes.kind.value}","ts":',
            self._about(changes.block).at(changes.event),
            Written(text.plain(to_arrow_numbers(changes.sequence)), before='"seq":').at(np.arange(len(changes))),
            *_key(changes),
            *(_image("before", changes, changes.shown_of(changes.before), changes.first) if changes.has_before else ()),
            *(_image("after", changes, changes.shown_of(changes.after), changes.last) if changes.has_after else ()),
            *_partial(changes),
            "}\n",
        ]

    def statement(self, block: Block, statement: StatementEvent) -> str:
        kind = "statement" if statement.is_in_transaction else "ddl"
        return _object(block, statement.event, kind, database=statement.database, sql=statement.text)

    def outcome(self, block: Block, event: int, outcome: XaOutcome) -> str:
        return _object(block, event, "commit" if outcome.is_commit else "rollback", xid=outcome.xid)

    def incident(self, block: Block, incident: Incident) -> str:
        return _object(block, incident.event, "incident", message=incident.message, meaning=incident.meaning)

    def notes(self, block: Block, events: NDArray[np.int64], texts: pa.Array) -> Line:
        every = np.arange(events.size)
        sql = Written(text.escaped(texts, JSON_ESCAPES), before='"sql":"', after='"}\n')
        return ['{"type":"query","ts":', self._about(block).at(events), sql.at(every)]

    def frame(self, page: Page, before: LineContext) -> tuple[Line, Line]:
        frame = Frame.of(page, before)
        texts, which = [""], np.zeros(len(page), np.int64)
        for i, role, xid in frame.unusual_ends(page):
            which[i] = len(texts)
            texts.append(_object(page.block, int(page.event[i]), _ENDS[role], xid=xid))
        return (), (Written(text.of_list(texts)).at(which),) if len(texts) > 1 else ()

    def _about(self, block: Block) -> Written:
        """When and where each event of a block is."""
        if self._block is not block:
            every = np.arange(len(block))
            gtid = Written(text.plain(transaction_gtids(block, every)), "null", '"', '"')
            line = (
                Written(iso_text(block.column("commit_us")), "null", '"', '"').at(every),
                ',"gtid":',
                gtid.at(every),
                *self._xids(block),
                f',"file":{_quoted(block.file)},"pos":',
                Written(text.plain(to_arrow_numbers(block.column("position"))), after=",").at(every),
            )
            self._block, self._abouts = block, Written(weave(line, len(block)))
        return self._abouts

    def _xids(self, block: Block) -> Line:
        """Of the XA transactions that the events belong to."""
        if not self.xa.xids:
            return ()
        begins, which = np.unique(block.column("transaction"), return_inverse=True)
        xids = [self.xa.xids.get(begin) for begin in begins.tolist()]
        return (Written(text.of_list(["" if xid is None else f',"xa":{_quoted(xid)}' for xid in xids])).at(which),)


def _object(block: Block, event: int, kind: str, *, xid: str = "", **more: str) -> str:
    """A line that is no change."""
    at = np.array([event])
    about = {
        "type": kind,
        "ts": iso_text(block.column("commit_us")[at])[0].as_py(),
        "gtid": transaction_gtids(block, at)[0].as_py(),
        **({"xa": xid} if xid else {}),
        "file": block.file,
        "pos": int(block.column("position")[event]),
        **more,
    }
    return json.dumps(about, ensure_ascii=False, separators=(",", ":")) + "\n"


def _key(changes: TableChanges) -> list[str | Chosen]:
    """Of the newest row. With minimal images the row after an update has only what it changed of the key."""
    found = {column.name: (column, changes.first) for column in changes.before}
    found |= {column.name: (column, changes.last) for column in changes.after}
    if not changes.table.key or any(name not in found for name in changes.table.key):
        return []
    return _members("key", changes, [found[name] for name in changes.table.key])


def _image(name: str, changes: TableChanges, columns: list[Column], rows: NDArray[np.int64]) -> list[str | Chosen]:
    return _members(name, changes, [(column, rows) for column in columns])


def _partial(changes: TableChanges) -> list[str | Chosen]:
    pieces: list[str | Chosen] = []
    for column in changes.shown_of(changes.partial):
        start = "]," if pieces else ',"partial":{'
        pieces += [f"{start}{_quoted(column.name)}:[", operations(changes, _list_objects, column, changes.last)]
    return [*pieces, "]}"] if pieces else []


def _list_objects(found: "JsonOperations", column: Column) -> pa.Array:  # noqa: ARG001 - it is named outside
    return list_objects(found, text.escaped(found.paths, JSON_ESCAPES))


def _members(name: str, changes: TableChanges, members: list[tuple[Column, NDArray[np.int64]]]) -> list[str | Chosen]:
    pieces: list[str | Chosen] = []
    for column, rows in members:
        start = "," if pieces else f',"{name}":{{'
        pieces += [f"{start}{_quoted(column.name)}:", values(changes, _VALUES, column, rows)]
    return [*pieces, "}"] if pieces else [f',"{name}":{{}}']


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
