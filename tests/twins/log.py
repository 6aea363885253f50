"""A whole log, transaction by transaction, with what a reader must see in it."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.model import ChangeKind, TableSchema
from tests.twins import event as ev
from tests.twins.event import Header, event
from tests.twins.row import UPDATE, rows, table_map

SOURCE = uuid.UUID("3e11fa47-71ca-11e1-9e33-c80aa9429562")
_GTID_TAGGED = 42
_KINDS = {
    0: (ChangeKind.INSERT,),
    1: (ChangeKind.UPDATE_PREIMAGE, ChangeKind.UPDATE_POSTIMAGE),
    2: (ChangeKind.DELETE,),
}


@dataclass(frozen=True, slots=True)
class Image:
    """One row image that was written."""

    table: TableSchema
    kind: ChangeKind
    row: Sequence[Any]
    file: str
    offset: int
    transaction: int  # offset of its first event
    ordinal: int  # of its event among the rows events of the transaction
    number: int  # of the image in its event
    gtid: str | None
    commit_us: int


@dataclass(slots=True)
class LogWriter:
    """Writes the bytes of one file as they come over the wire: without the magic number, from position 4 on."""

    file: str = "binlog.000001"
    is_mariadb: bool = True
    is_checksummed: bool = True
    has_ends: bool = True  # in the headers of events inside a transaction; from MariaDB 11.4 on there are none
    timestamp: int = 1_700_000_000
    position: int = 4
    data: bytearray = field(default_factory=bytearray)
    images: list[Image] = field(default_factory=list[Image])
    boundaries: list[int] = field(default_factory=list[int])  # offsets between two transactions
    _gtid: str | None = None
    _number: int = 0
    _transaction: int = 4
    _commit_us: int = 0
    _ordinal: int = 0
    _is_inside: bool = False  # a transaction: after its first event and before its last

    def add(self, kind: int, body: bytes, *, flags: int = 0) -> int:
        """Gives the offset in the file."""
        has_end = self.has_ends or not self._is_inside
        header = Header(self.position, self.timestamp, flags=flags, is_checksummed=self.is_checksummed, has_end=has_end)
        return self.add_raw(event(kind, body, header))

    def add_raw(self, raw: bytes) -> int:
        at, self.position = self.position, self.position + len(raw)
        self.data += raw
        return at

    def add_made_up(self, kind: int, body: bytes) -> None:
        """In the stream, but not in the file."""
        self.data += event(kind, body, Header(is_made_up=True, is_checksummed=self.is_checksummed))

    def open(self) -> "LogWriter":
        self.add_raw(self._format(Header(self.position, self.timestamp, flags=ev.IN_USE)))
        self.boundaries.append(self.position)
        return self

    def made_up_format(self) -> bytes:
        """What a server sends first to a reader that starts inside a file."""
        return self._format(Header(is_made_up=True))

    def _format(self, header: Header) -> bytes:
        mariadb = "10.11.6-MariaDB-log" if self.has_ends else "11.8.2-MariaDB-log"
        version = mariadb if self.is_mariadb else "8.4.0"
        return ev.format_description_event(header, is_checksummed=self.is_checksummed, version=version)

    def begin(self, *, is_standalone: bool = False, statement: bytes = b"BEGIN") -> None:
        """`statement` is what MySQL begins it with."""
        self._number += 1
        self._transaction = self.position
        self._ordinal = 0
        self._commit_us = self.timestamp * 1_000_000
        if self.is_mariadb:
            self.add(ev.MARIADB_GTID, ev.mariadb_gtid(5, self._number, is_standalone=is_standalone))
            self._gtid = f"5-1-{self._number}"
            self._is_inside = not is_standalone
            return
        self._commit_us += 123_456
        self.add(ev.GTID, ev.mysql_gtid(SOURCE, self._number, self._commit_us))
        self._gtid = f"{SOURCE}:{self._number}"
        if not is_standalone:
            self.add(ev.QUERY, ev.query(statement))

    def begin_tagged(self, tag: str) -> None:
        """MySQL's GTID with a tag."""
        self._number += 1
        self._transaction, self._ordinal = self.position, 0
        self._commit_us = self.timestamp * 1_000_000
        self._gtid = f"{SOURCE}:{tag}:{self._number}"
        uuid = b"".join(_number(byte) for byte in SOURCE.bytes)
        fields = (b"\0" + b"\0", b"\x02" + uuid, b"\x04" + _number(2 * self._number), b"\x06" + _text(tag))
        self.add(_GTID_TAGGED, bytes(3) + b"".join(fields))
        self.add(ev.QUERY, ev.query(b"BEGIN"))

    def map(self, table_id: int, table: TableSchema, *, with_default_charset: bool = False) -> None:
        body = table_map(table_id, table, is_mariadb=self.is_mariadb, with_default_charset=with_default_charset)
        self.add(ev.TABLE_MAP, body)

    def rows(
        self,
        change: int,
        table_id: int,
        table: TableSchema,
        images: Sequence[Sequence[Any]],
        *,
        version: int = 1,
        flags: int = 1,
    ) -> None:
        kind, body, starts = rows(change, table_id, table.columns, images, version=version, flags=flags)
        at = self.add(kind, body) + 19
        kinds = _KINDS[change]
        for number, (row, start) in enumerate(zip(images, starts, strict=True)):
            image_kind = kinds[number % 2 if change == UPDATE else 0]
            row_key = self.file, at + start, self._transaction, self._ordinal, number
            self.images.append(Image(table, image_kind, row, *row_key, self._gtid, self._commit_us))
        self._ordinal += 1

    def commit(self, *, with_query: bool = False) -> None:
        self._is_inside = False
        self.add(ev.QUERY, ev.query(b"COMMIT")) if with_query else self.add(ev.XID, ev.xid(self._number))
        self.boundaries.append(self.position)

    def statement(
        self, text: str, *, schema: str = "shop", status: bytes = b"\x00\x00\x00\x00\x00", flags: int = 0
    ) -> None:
        """A transaction of its own, such as a DDL."""
        self.begin(is_standalone=True)
        self.add(ev.QUERY, ev.query(text.encode(), schema, status), flags=flags)
        self.boundaries.append(self.position)

    def rotate(self, file: str) -> None:
        """Continue in the next file: offsets start again, `data` does not."""
        self.add(ev.ROTATE, ev.rotate(file))
        self.add_made_up(ev.ROTATE, ev.rotate(file))
        self.file, self.position = file, 4


def _number(value: int) -> bytes:
    """Of variable length, here always in the longest form."""
    return b"\xff" + value.to_bytes(8, "little")


def _text(value: str) -> bytes:
    return _number(len(value)) + value.encode()
