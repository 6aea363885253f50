"""TABLE_MAP and ROWS events as bytes, from a schema and plain values.

A row is a list with one cell per column: a value, None for SQL NULL, or ABSENT for a column that the image leaves out.
"""

from collections.abc import Sequence
from typing import Any, Final

from penstock.model import Column, TableSchema, WireType
from tests.twins.value import encode

ABSENT: Final = type("Absent", (), {"__repr__": lambda _: "ABSENT"})()
INSERT, UPDATE, DELETE = 0, 1, 2
_V1, _V2 = 23, 30
_COLLATIONS = {
    "utf8mb4": 45, "utf8mb3": 33, "ascii": 11, "binary": 63, "latin1": 8, "gbk": 28, "utf16": 54, "sjis": 13,
}  # fmt: skip
_NUMERIC = {
    WireType.TINY, WireType.SHORT, WireType.INT24, WireType.LONG, WireType.LONGLONG,
    WireType.NEWDECIMAL, WireType.FLOAT, WireType.DOUBLE, WireType.YEAR,
}  # fmt: skip
_TEXT = {WireType.VARCHAR, WireType.STRING, WireType.BLOB, WireType.VARCHAR_COMPRESSED, WireType.BLOB_COMPRESSED}
_ONE_BYTE = {
    WireType.FLOAT, WireType.DOUBLE, WireType.BLOB, WireType.JSON, WireType.GEOMETRY,
    WireType.TIMESTAMP2, WireType.DATETIME2, WireType.TIME2, WireType.VECTOR, WireType.BLOB_COMPRESSED,
}  # fmt: skip


def packed(number: int) -> bytes:
    """Length-encoded integer."""
    if number < 251:
        return bytes([number])
    if number < 1 << 16:
        return b"\xfc" + number.to_bytes(2, "little")
    return b"\xfd" + number.to_bytes(3, "little")


def bitmap(bits: Sequence[bool]) -> bytes:
    """Lowest bit first."""
    return sum(bool(bit) << i for i, bit in enumerate(bits)).to_bytes((len(bits) + 7) // 8, "little")


def _bits_from_the_top(bits: Sequence[bool]) -> bytes:
    raw = bytearray((len(bits) + 7) // 8)
    for i, bit in enumerate(bits):
        raw[i >> 3] |= bit << (7 - (i & 7))
    return bytes(raw)


def _text(text: str) -> bytes:
    return packed(len(text.encode())) + text.encode()


def _type_byte(column: Column) -> int:
    return 254 if column.type in {WireType.ENUM, WireType.SET} else column.type


def _metadata(column: Column) -> bytes:  # noqa: PLR0911 - a branch per type
    kind = column.type
    if kind in _ONE_BYTE:
        return bytes([column.size])
    match kind:
        case WireType.VARCHAR | WireType.VARCHAR_COMPRESSED:
            return column.size.to_bytes(2, "little")
        case WireType.NEWDECIMAL:
            return bytes([column.precision, column.scale])
        case WireType.BIT:
            return bytes([column.size % 8, column.size // 8])
        case WireType.ENUM | WireType.SET:
            return bytes([kind, column.size])
        case WireType.STRING:
            # Two bits of a length over 255 hide, inverted, in the type.
            return bytes([254 ^ (column.size >> 8 & 3) << 4, column.size & 0xFF])
        case _:
            return b""


def table_map(
    table_id: int, table: TableSchema, *, is_mariadb: bool = True, with_default_charset: bool = False
) -> bytes:
    """The body with full metadata, as MariaDB or MySQL 8.0.23 and later write it."""
    columns, names = table.columns, (table.name.schema.encode(), table.name.table.encode())
    meta = b"".join(_metadata(column) for column in columns)
    head = table_id.to_bytes(6, "little") + b"\x01\x00" + b"".join(bytes([len(n)]) + n + b"\x00" for n in names)
    head += packed(len(columns)) + bytes(map(_type_byte, columns)) + packed(len(meta)) + meta
    head += bitmap([column.nullable for column in columns])
    text = _TEXT | {WireType.GEOMETRY if is_mariadb else WireType.VECTOR}
    fields = {
        1: _bits_from_the_top([c.unsigned or c.type is WireType.YEAR for c in columns if c.type in _NUMERIC]),
        **_charsets([c for c in columns if c.type in text], 2, 3, with_default=with_default_charset),
        4: b"".join(_text(column.name) for column in columns),
        **{number: _labels(columns, kind) for number, kind in ((5, WireType.SET), (6, WireType.ENUM))},
        8: b"".join(packed(i) for i, column in enumerate(columns) if column.name in table.key),
        **_charsets([c for c in columns if c.labels], 10, 11, with_default=with_default_charset),
        12: b"" if is_mariadb else _bits_from_the_top([True] * len(columns)),
    }
    return head + b"".join(bytes([number]) + packed(len(raw)) + raw for number, raw in fields.items() if raw)


def _charsets(columns: Sequence[Column], default: int, each: int, *, with_default: bool) -> dict[int, bytes]:
    """Either one collation per column, or the first column's and (index, collation) where another one differs."""
    numbers = [_COLLATIONS[column.charset or "binary"] for column in columns]
    if not with_default:
        return {each: b"".join(map(packed, numbers))}
    others = [(i, number) for i, number in enumerate(numbers) if number != numbers[0]]
    return {default: b"".join(map(packed, [*numbers[:1], *(n for pair in others for n in pair)]))}


def _labels(columns: Sequence[Column], kind: WireType) -> bytes:
    chosen = [column.labels for column in columns if column.type is kind]
    return b"".join(packed(len(labels)) + b"".join(map(_text, labels)) for labels in chosen)


def rows(
    change: int,
    table_id: int,
    columns: Sequence[Column],
    images: Sequence[Sequence[Any]],
    *,
    version: int = 1,
    extra: bytes = b"",
    flags: int = 1,
) -> tuple[int, bytes, list[int]]:
    """Type and body of a rows event, and where each image begins in the body.

    The images of an update alternate, before and after. All images of one side leave out the same columns.
    """
    head = table_id.to_bytes(6, "little") + flags.to_bytes(2, "little")
    if version == 2:
        head += (len(extra) + 2).to_bytes(2, "little") + extra
    head += packed(len(columns))
    for image in images[: 2 if change == UPDATE else 1]:
        head += bitmap([cell is not ABSENT for cell in image])
    body, starts = bytearray(head), []
    for image in images:
        starts.append(len(body))
        shown = [(column, cell) for column, cell in zip(columns, image, strict=True) if cell is not ABSENT]
        filling = [True] * (-len(shown) % 8)  # as MariaDB and older MySQL do; newer ones write zeros
        body += bitmap([*(cell is None for _, cell in shown), *filling])
        body += b"".join(encode(column, cell) for column, cell in shown if cell is not None)
    return (_V1 if version == 1 else _V2) + change, bytes(body), starts
