"""A log in memory, as large as one likes: orders of a shop, written by the tests' builder and then repeated."""

import random
import struct
import zlib
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.model import Column, TableName, TableSchema, WireType
from tests.twins.log import LogWriter
from tests.twins.row import INSERT

TABLE_ID = 7
ROWS_PER_EVENT, EVENTS_PER_TRANSACTION, TRANSACTIONS = 50, 10, 20
_TEXT = {"size": 256, "charset": "utf8mb4"}
ORDERS = TableSchema(
    TableName("shop", "orders"),
    (
        Column("id", WireType.LONGLONG, nullable=False),
        Column("customer", WireType.LONG),
        Column("name", WireType.VARCHAR, **_TEXT),
        Column("city", WireType.VARCHAR, **_TEXT),
        Column("street", WireType.VARCHAR, **_TEXT),
        Column("amount", WireType.NEWDECIMAL, precision=10, scale=2),
        Column("ordered", WireType.DATETIME2, size=3),
        Column("changed", WireType.TIMESTAMP2),
        Column("state", WireType.TINY),
        Column("note", WireType.BLOB, size=2, charset="utf8mb4"),
    ),
    ("id",),
)


def _row(number: int, dice: random.Random) -> list[Any]:
    moment = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(milliseconds=dice.randrange(10**10))
    return [
        number,
        dice.randrange(10**6),
        *("abcdefghijklmnopqrstuvwxyzäöü"[: dice.randrange(5, 29)] for _ in range(3)),
        Decimal((dice.randrange(2), tuple(map(int, str(dice.randrange(10**9)))), -2)),
        moment.replace(tzinfo=None),
        moment.replace(microsecond=0),
        number % 4,
        "x" * dice.randrange(10, 80),
    ]


def sample() -> LogWriter:
    """One period: as MariaDB writes it, with events of about 8 KB."""
    dice, log, number = random.Random(7), LogWriter().open(), 0
    for _ in range(TRANSACTIONS):
        log.begin()
        log.map(TABLE_ID, ORDERS)
        for _ in range(EVENTS_PER_TRANSACTION):
            log.rows(INSERT, TABLE_ID, ORDERS, [_row(number + i, dice) for i in range(ROWS_PER_EVENT)])
            number += ROWS_PER_EVENT
        log.commit()
    return log


def repeated(log: LogWriter, size_bytes: int) -> tuple[NDArray[np.uint8], int]:
    """The sample over and over, with positions and checksums of its own; gives also the number of rows."""
    first = int.from_bytes(log.data[9:13], "little")
    period = np.frombuffer(bytes(log.data[first:]), np.uint8)
    count = max(1, size_bytes // period.size)
    data = np.concatenate([np.frombuffer(bytes(log.data[:first]), np.uint8), np.tile(period, count)])
    view, at = memoryview(data), first
    while at < data.size:
        (size,) = struct.unpack_from("<I", view, at + 9)
        struct.pack_into("<I", view, at + 13, at + 4 + size)
        struct.pack_into("<I", view, at + size - 4, zlib.crc32(view[at : at + size - 4]))
        at += size
    return data, len(log.images) * count
