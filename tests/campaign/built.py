"""Logs of the tests' builder with every column type that it writes; the same ones each time."""

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

from penstock.model import Column, TableName, TableSchema, WireType
from tests.twins.log import LogWriter
from tests.twins.row import ABSENT, DELETE, INSERT, UPDATE
from tests.twins.value import INT_BYTES, ZERO, decimal_of

_COUNT = 24
_TEXTS = {WireType.VARCHAR: (20, 300), WireType.STRING: (9, 400), WireType.BLOB: (1, 2, 3, 4)}
_TIMES = (WireType.TIME2, WireType.DATETIME2, WireType.TIMESTAMP2)
_OTHERS = (
    WireType.FLOAT, WireType.DOUBLE, WireType.DATE, WireType.YEAR, WireType.NEWDECIMAL, WireType.ENUM, WireType.SET,
)  # fmt: skip
_KINDS = (*INT_BYTES, *_TIMES, *_TEXTS, *_OTHERS)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


def built_logs() -> Iterator[tuple[str, bytes]]:
    """Name and bytes, without the magic number."""
    for number in range(_COUNT):
        yield f"built-{number}", _log(random.Random(number), number)


def _log(dice: random.Random, number: int) -> bytes:
    log = LogWriter(is_mariadb=number % 2 == 0, is_checksummed=number % 3 > 0).open()
    tables = {table_id: _table(dice, name, number) for table_id, name in ((7, "orders"), (8, "lines"))}
    for _ in range(3):
        if dice.randrange(4) == 0:
            log.statement("ALTER TABLE orders ADD COLUMN x INT")
        log.begin()
        for table_id in dice.sample((7, 8), dice.randint(1, 2)):
            table = tables[table_id]
            log.map(table_id, table, with_default_charset=number % 4 < 2)
            change = dice.choice((INSERT, UPDATE, DELETE))
            sides = [_presence(dice, len(table.columns)) for _ in range(2 if change == UPDATE else 1)]
            rows = [_row(dice, table, side) for _ in range(dice.randint(1, 3)) for side in sides]
            log.rows(change, table_id, table, rows, version=dice.randint(1, 2))
        log.commit(with_query=dice.random() < 0.2)
    return bytes(log.data)


def _table(dice: random.Random, name: str, number: int) -> TableSchema:
    kinds = [_KINDS[number % len(_KINDS)], *dice.sample(_KINDS, dice.randint(0, 6))]
    columns = tuple(_column(dice, f"c{i}", kind) for i, kind in enumerate(kinds))
    return TableSchema(TableName("shop", name), columns, ("c0",))


def _column(dice: random.Random, name: str, kind: WireType) -> Column:
    details: dict[str, Any] = {"nullable": dice.random() < 0.8}
    if kind in INT_BYTES:
        details["unsigned"] = dice.random() < 0.5
    elif kind in _TIMES:
        details["size"] = dice.randint(0, 6)
    elif kind in _TEXTS:
        details |= {"size": dice.choice(_TEXTS[kind]), "charset": dice.choice(("utf8mb4", "ascii", "binary"))}
    elif kind is WireType.NEWDECIMAL:
        precision = dice.choice((1, 9, 10, 18, 19, 38, 39, 65))
        details |= {"precision": precision, "scale": dice.randint(0, min(precision, 38))}
    elif kind in {WireType.ENUM, WireType.SET}:
        details |= {"labels": ("red", "blue", "grün"), "size": dice.randint(1, 2), "charset": "utf8mb4"}
    elif kind in {WireType.FLOAT, WireType.DOUBLE}:
        details["size"] = 4 if kind is WireType.FLOAT else 8
    return Column(name, kind, **details)


def _presence(dice: random.Random, count: int) -> list[bool]:
    if dice.random() < 0.7:
        return [True] * count
    presence = [dice.random() < 0.6 for _ in range(count)]
    presence[dice.randrange(count)] = True
    return presence


def _row(dice: random.Random, table: TableSchema, present: list[bool]) -> list[Any]:
    return [
        ABSENT if not is_here else None if dice.random() < 0.15 else _value(dice, column)
        for column, is_here in zip(table.columns, present, strict=True)
    ]


def _value(dice: random.Random, column: Column) -> Any:  # noqa: PLR0911 - a branch per type
    kind = column.type
    if kind in INT_BYTES:
        bits = 8 * INT_BYTES[kind]
        return dice.getrandbits(bits) if column.unsigned else dice.getrandbits(bits) - (1 << bits - 1)
    match kind:
        case WireType.FLOAT | WireType.DOUBLE:
            return float(dice.randint(-999, 999))
        case WireType.NEWDECIMAL:
            return decimal_of(dice.randrange(10**column.precision) * dice.choice((1, -1)), column.scale)
        case WireType.DATE:
            return dice.choice((ZERO, date(2024, 2, 29)))
        case WireType.TIME2:
            return timedelta(seconds=dice.randint(-9999, 9999))
        case WireType.DATETIME2 | WireType.TIMESTAMP2:
            moment = _EPOCH + timedelta(seconds=dice.randrange(10**9))
            return dice.choice((ZERO, moment if kind is WireType.TIMESTAMP2 else moment.replace(tzinfo=None)))
        case WireType.YEAR:
            return dice.choice((0, 1901, 2155))
        case WireType.ENUM:
            return dice.choice(("", *column.labels))
        case WireType.SET:
            return dice.sample(column.labels, dice.randint(0, len(column.labels)))
        case _:
            text = (
                "abc text é 字"[: dice.randint(0, 12)] if column.charset == "utf8mb4" else "plain"[: dice.randint(0, 5)]
            )
            return text.encode() if column.charset == "binary" else text
