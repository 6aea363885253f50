"""Hypothesis strategies: columns of every decoded type, rows with boundary values, whole logs."""

import os
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from penstock.model import Column, TableName, TableSchema, WireType
from tests.twins.log import LogWriter
from tests.twins.row import ABSENT, DELETE, INSERT, UPDATE
from tests.twins.value import INT_BYTES, ZERO, decimal_of, set_text

_LABELS = st.lists(st.text("abcäß字 x", min_size=1, max_size=4), unique=True)
_TEXTS = (WireType.VARCHAR, WireType.STRING, WireType.BLOB)
_TIMES = (WireType.TIME2, WireType.DATETIME2, WireType.TIMESTAMP2)
_OLD_TIMES = (WireType.TIME, WireType.DATETIME, WireType.TIMESTAMP)
_PLAIN = (*INT_BYTES, WireType.FLOAT, WireType.DOUBLE, WireType.DATE, WireType.YEAR, *_OLD_TIMES)
_OTHERS = (WireType.NEWDECIMAL, WireType.ENUM, WireType.SET, WireType.BIT, WireType.GEOMETRY, WireType.VECTOR)
_COMPRESSED = (WireType.VARCHAR_COMPRESSED, WireType.BLOB_COMPRESSED)
_CHARSETS = ("utf8mb4", "utf8mb3", "ascii", "binary", "latin1", "gbk", "utf16", "sjis")


@st.composite
def columns(draw: st.DrawFn, name: str = "c", kind: WireType | None = None) -> Column:
    kind = kind or draw(st.sampled_from((*_PLAIN, *_TIMES, *_TEXTS, *_COMPRESSED, *_OTHERS)))
    attributes: dict[str, Any] = {"nullable": draw(st.booleans())}
    if kind in INT_BYTES:
        attributes["unsigned"] = draw(st.booleans())
    elif kind in _TIMES:
        attributes["size"] = draw(st.integers(0, 6))
    elif kind is WireType.NEWDECIMAL:
        attributes["precision"] = draw(st.one_of(st.integers(1, 65), st.sampled_from((9, 18, 19, 38, 39, 65))))
        attributes["scale"] = draw(st.integers(0, min(attributes["precision"], 38)))
    elif kind in {*_TEXTS, *_COMPRESSED}:
        sizes = {WireType.STRING: (0, 1020), WireType.BLOB: (1, 4), WireType.BLOB_COMPRESSED: (2, 4)}
        attributes["size"] = draw(st.integers(*sizes.get(kind, (0 if kind is WireType.VARCHAR else 256, 65535))))
        attributes["charset"] = draw(st.sampled_from(_CHARSETS))
    elif kind is WireType.BIT:
        attributes["size"] = draw(st.integers(1, 64))
    elif kind in {WireType.GEOMETRY, WireType.VECTOR}:
        attributes["size"] = 4
    elif kind in {WireType.ENUM, WireType.SET}:
        attributes["labels"] = tuple(draw(_LABELS.filter(bool)))
        least = (len(attributes["labels"]) + 7) // 8
        attributes["size"] = draw(st.integers(1, 2)) if kind is WireType.ENUM else draw(st.integers(least, 8))
        attributes["charset"] = "utf8mb4"
    elif kind in {WireType.FLOAT, WireType.DOUBLE}:
        attributes["size"] = 4 if kind is WireType.FLOAT else 8
    return Column(name, kind, **attributes)


def tables(count: st.SearchStrategy[int], name: str = "orders") -> st.SearchStrategy[TableSchema]:
    def of(size: int) -> st.SearchStrategy[TableSchema]:
        each = st.tuples(*(columns(f"c{i}") for i in range(size)))
        return each.map(lambda drawn: TableSchema(TableName("shop", name), drawn, ("c0",)))

    return count.flatmap(of)


def _edges(low: int, high: int) -> st.SearchStrategy[int]:
    return st.one_of(
        st.sampled_from((low, low + 1, 0 if low <= 0 <= high else low, high - 1, high)), st.integers(low, high)
    )


def _fraction(digits: int) -> Callable[[Any], Any]:
    """Cut a time to the digits that the column keeps."""

    def cut(value: Any) -> Any:
        unit = 10 ** (6 - digits)
        if isinstance(value, timedelta):
            micros = value // timedelta(microseconds=1)
            return timedelta(microseconds=abs(micros) // unit * unit * (-1 if micros < 0 else 1))
        return value.replace(microsecond=value.microsecond // unit * unit)

    return cut


def values(column: Column) -> st.SearchStrategy[Any]:  # noqa: C901, PLR0911, PLR0912 - a branch per type
    kind = column.type
    if kind in INT_BYTES:
        bits = 8 * INT_BYTES[kind]
        return _edges(0, (1 << bits) - 1) if column.unsigned else _edges(-1 << bits - 1, (1 << bits - 1) - 1)
    match kind:
        case WireType.FLOAT | WireType.DOUBLE:
            return st.floats(width=32 if kind is WireType.FLOAT else 64, allow_nan=False)
        case WireType.NEWDECIMAL:
            most = 10**column.precision - 1
            return _edges(-most, most).map(lambda number: decimal_of(number, column.scale))
        case WireType.DATE:
            return st.one_of(st.just(ZERO), st.dates(date(1, 1, 1)))
        case WireType.TIME2:
            most = timedelta(hours=838, minutes=59, seconds=59, microseconds=999_999)
            return st.one_of(st.sampled_from((most, -most)), st.timedeltas(-most, most)).map(_fraction(column.size))
        case WireType.DATETIME2:
            return st.one_of(st.just(ZERO), st.datetimes().map(_fraction(column.size)))
        case WireType.TIME:
            most = timedelta(hours=838, minutes=59, seconds=59)
            return st.one_of(st.sampled_from((most, -most)), st.timedeltas(-most, most)).map(_fraction(0))
        case WireType.DATETIME:
            return st.one_of(st.just(ZERO), st.datetimes().map(_fraction(0)))
        case WireType.TIMESTAMP:
            return st.one_of(st.just(ZERO), st.integers(1, 2**32 - 1).map(lambda s: datetime.fromtimestamp(s, UTC)))
        case WireType.BIT:
            return _edges(0, (1 << column.size) - 1)
        case WireType.GEOMETRY:
            return st.binary(min_size=4, max_size=60)
        case WireType.VECTOR:
            return st.lists(st.floats(width=32, allow_nan=False), max_size=9)
        case WireType.TIMESTAMP2:
            first, last = datetime(1970, 1, 1, 0, 0, 1), datetime(2106, 2, 7, 6, 28, 15)  # noqa: DTZ001 - zone follows
            moments = st.one_of(st.sampled_from((first, last)), st.datetimes(first, last))
            return st.one_of(st.just(ZERO), moments.map(_fraction(column.size)).map(lambda t: t.replace(tzinfo=UTC)))
        case WireType.YEAR:
            return st.one_of(st.just(0), st.integers(1901, 2155))
        case WireType.ENUM:
            return st.sampled_from(("", *column.labels))
        case WireType.SET:
            return st.sets(st.sampled_from(column.labels)).map(sorted)
        case _:
            longest = 255 if column.size < 256 else 300
            if column.charset == "binary":
                return st.binary(max_size=longest)
            return st.text(_alphabet(column.charset), max_size=longest // 4)


def _alphabet(charset: str) -> Any:
    """Characters whose bytes are the same to Python as to the servers; `test_charsets` has all of them."""
    if charset in {"gbk", "sjis", "latin1"}:
        return st.sampled_from("aZ 09~\u6f22\u5b57" if charset != "latin1" else "aZ 09~\xe4\xdf\u20ac")
    return st.characters(max_codepoint=127 if charset == "ascii" else None, exclude_categories=["Cs"])


def shown(column: Column, value: Any) -> Any:
    """What a reader sees of a cell that was written."""
    if (
        value is None
        or value is ABSENT
        or (isinstance(value, str) and value == ZERO and column.type not in {*_TEXTS, *_COMPRESSED})
    ):
        return None
    if column.type is WireType.STRING and column.charset == "binary":
        return value.ljust(column.size, b"\x00")
    return (
        set_text(column.labels, sum(1 << column.labels.index(v) for v in value))
        if column.type is WireType.SET
        else value
    )


def rows(table: TableSchema, present: Sequence[bool]) -> st.SearchStrategy[list[Any]]:
    cells = [
        st.one_of(st.none(), values(c)) if p else st.just(ABSENT) for c, p in zip(table.columns, present, strict=True)
    ]
    return st.tuples(*cells).map(list)


@st.composite
def presences(draw: st.DrawFn, count: int) -> list[bool]:
    """Usually all columns; sometimes some, but never none."""
    if draw(st.booleans()):
        return [True] * count
    flags = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    flags[draw(st.integers(0, count - 1))] = True
    return flags


@st.composite
def write_rows(draw: st.DrawFn, log: LogWriter, table_id: int, table: TableSchema, most: int = 3) -> None:
    """One rows event with up to `most` rows."""
    change = draw(st.sampled_from((INSERT, UPDATE, DELETE)))
    sides = [draw(presences(len(table.columns))) for _ in range(2 if change == UPDATE else 1)]
    images = [draw(rows(table, side)) for _ in range(draw(st.integers(1, most))) for side in sides]
    log.rows(change, table_id, table, images, version=draw(st.sampled_from((1, 2))))


@st.composite
def logs(draw: st.DrawFn, files: int = 2, transactions: int = 3, *, is_checksummed: bool | None = None) -> LogWriter:
    """Up to `files` files of transactions on two tables, with statements and made-up events between them."""
    checksummed = draw(st.booleans()) if is_checksummed is None else is_checksummed
    is_mariadb = draw(st.booleans())
    has_ends = not is_mariadb or draw(st.booleans())
    log = LogWriter(is_mariadb=is_mariadb, is_checksummed=checksummed, has_ends=has_ends)
    both = {7: draw(tables(st.integers(1, 6))), 8: draw(tables(st.integers(1, 4), "lines"))}
    with_default = draw(st.booleans())
    for number in range(1, draw(st.integers(1, files)) + 1):
        if number > 1:
            log.rotate(f"binlog.{number:06}")
        log.open()
        for _ in range(draw(st.integers(1, transactions))):
            if draw(st.integers(0, 4)) == 0:
                log.statement("ALTER TABLE orders ADD COLUMN x INT")
                continue
            log.begin()
            for table_id in draw(st.lists(st.sampled_from((7, 8)), min_size=1, max_size=3)):
                log.map(table_id, both[table_id], with_default_charset=with_default)
                draw(write_rows(log, table_id, both[table_id]))
            log.commit(with_query=draw(st.booleans()))
    return log


@st.composite
def broken(draw: st.DrawFn, raw: bytes, first: int = 0) -> bytes:
    """These bytes cut short, with some bits flipped, or with garbage in the middle; `first` bytes stay whole."""
    data = bytearray(raw)
    for _ in range(draw(st.integers(1, 3))):
        damage, at = (
            draw(st.sampled_from(("cut", "flip", "flip", "flip", "garbage"))),
            draw(st.integers(first, len(data))),
        )
        if damage == "cut":
            del data[at:]
        elif damage == "flip" and at < len(data):
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif damage == "garbage":
            some = draw(st.binary(min_size=1, max_size=8))
            data[at : at + len(some)] = some
    return bytes(data)


def examples(count: int) -> settings:
    """No deadline: machines that build are busy, and the first call of a kernel loads it.

    `EXAMPLES=20 pytest tests/unit/binlog` runs twenty times as many.
    """
    return settings(max_examples=max(10, round(count * float(os.environ.get("EXAMPLES", "1")))), deadline=None)
