"""A log with XA transactions that a test wrote, event by event, and what of it is to be delivered where.

The model is the slow twin of penstock.binlog.xa: it knows which rows are prepared under which id, and delivers them
when the id is committed.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from penstock.binlog.events.block import Block
from penstock.errors import PositionLostError
from penstock.model import Column, Position, TableName, TableSchema, WireType
from tests.twins import event as ev
from tests.twins.log import LogWriter
from tests.twins.row import INSERT

TABLE = TableSchema(
    TableName("shop", "t"),
    (Column("id", WireType.LONG), Column("text", WireType.VARCHAR, size=200, charset="utf8mb4")),
    ("id",),
)
_PREPARED_XA, _GTID_BYTES = 0x40, 19 + 19 + 4


def xid_text(name: str) -> str:
    return f"X'{name.encode().hex()}',X'',1"


def find_events(block: Block) -> list[int]:
    """The events that begin an XA transaction, end its statements, or say what became of one."""
    events = list[int]()
    data, starts, sizes = block.raw
    for event in range(len(block)):
        raw = data[starts[event] : starts[event] + sizes[event]].tobytes()
        if block.column("entry")[event] not in (1, 3):
            continue
        if raw[4] == ev.QUERY:
            text = raw[19 + 13 + int.from_bytes(raw[30:32], "little") + raw[27] + 1 :]
            if text[:3].upper() == b"XA ":
                events.append(event)
        elif raw[4] == ev.MARIADB_GTID and raw[31] & _PREPARED_XA:
            events.append(event)
    return events


@dataclass(slots=True)
class XaLog:
    """Writes transactions, and notes the ids of the rows that a reader is to get, in order."""

    writer: LogWriter
    delivered: list[tuple[int, str, int]] = field(default_factory=list[tuple[int, str, int]])  # id, file, transaction
    prepared: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    boundaries: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    _next: int = 1

    def plain(self, rows: int = 1) -> None:
        at = self.writer.position
        self.writer.begin()
        self._deliver(self._rows(rows), at)
        self.writer.commit()
        self._end()

    def prepare(self, name: str, rows: int, *, is_one_phase: bool = False) -> None:
        at = self.writer.position
        self._begin(name)
        ids = self._rows(rows)
        self.writer.add(ev.QUERY, ev.query(f"XA END {xid_text(name)}".encode()))
        self.writer.add(ev.XA_PREPARE, struct.pack("<BIII", is_one_phase, 1, len(name), 0) + name.encode())
        self._end()
        if is_one_phase:
            self._deliver(ids, at)
        else:
            self.prepared[name] = ids

    def close(self, name: str, *, is_commit: bool) -> None:
        at = self.writer.position
        self.writer.timestamp += 7
        self.writer.statement(f"XA {'COMMIT' if is_commit else 'ROLLBACK'} {xid_text(name)}")
        self._end()
        ids = self.prepared.pop(name)
        if is_commit:
            self._deliver(ids, at)

    def rotate(self) -> None:
        number = int(self.writer.file.rpartition(".")[2])
        self.writer.rotate(f"binlog.{number + 1:06}")
        self.writer.open()
        self._end()

    def _begin(self, name: str) -> None:
        log = self.writer
        log.begin(is_standalone=True)
        if not log.is_mariadb:
            log.add(ev.QUERY, ev.query(f"XA START {xid_text(name)}".encode()))
            return
        # The GTID that was just written, again with the id.
        number = bytes(log.data[-_GTID_BYTES + 19 : -_GTID_BYTES + 27])
        del log.data[-_GTID_BYTES:]
        log.position -= _GTID_BYTES
        xid = struct.pack("<IBB", 1, len(name), 0) + name.encode()
        log.add(ev.MARIADB_GTID, number + struct.pack("<IB", 5, _PREPARED_XA) + xid)

    def _rows(self, count: int) -> list[int]:
        """An event for each two rows."""
        ids = list(range(self._next, self._next + count))
        self._next += count
        if ids:
            self.writer.map(7, TABLE)
        for first in range(0, count, 2):
            self.writer.rows(INSERT, 7, TABLE, [[number, "x" * (number % 50)] for number in ids[first : first + 2]])
        return ids

    def _deliver(self, ids: Sequence[int], at: int) -> None:
        self.delivered += [(number, self.writer.file, at) for number in ids]

    def _end(self) -> None:
        self.boundaries.append((self.writer.file, self.writer.position))


@dataclass(slots=True)
class WrittenLog:
    """Blocks of a log as its server would send them again, from the first file that was not purged on."""

    blocks: Sequence[Block]
    purged: int = 0  # files
    reads: int = 0

    def files(self) -> list[str]:
        return list(dict.fromkeys(block.file for block in self.blocks))[self.purged :]

    def read_raw(self, begin: Position, end: Position) -> Iterator[Block]:
        self.reads += 1
        if begin.file not in self.files():
            raise PositionLostError(f"there is no {begin.file}")
        for block in self.blocks:
            part = block.between(begin, end)
            if len(part):
                yield part
