"""A TABLE_MAP body without full metadata → the same with it, from what the schema history knows of the table.

What the body says stays as it is; what it lacks is written as a server with `binlog_row_metadata=FULL` does. So whoever
decodes rows later needs nothing but the body. A body that does not fit the history's table is an error: the rows are of
another version of it, and which one nobody can tell.
"""

from collections.abc import Iterable, Iterator, Sequence

from penstock.binlog.events.map_field import LABELLED, MapField, types_with_charset, types_with_sign
from penstock.binlog.events.table_map import fields_of, parse_table_map
from penstock.binlog.values.charset import collation_of
from penstock.errors import SchemaError
from penstock.model import Column, TableSchema, WireType
from penstock.model.table import are_exact_labels, is_nameless
from penstock.schema.ddl.key import KeyKind
from penstock.schema.shape import Field, Index, Table

# Tables that an old server made keep the times of that day until they are altered.
_OLD = {WireType.TIME: WireType.TIME2, WireType.DATETIME: WireType.DATETIME2, WireType.TIMESTAMP: WireType.TIMESTAMP2}
_BYTES = 63  # the collation `binary`


def completed_body(body: bytes, table: Table, server_version: str) -> bytes:
    """Raises SchemaError where the two do not fit."""
    logged = parse_table_map(body, server_version)
    found = difference(logged, table.schema)
    if found:
        raise SchemaError(f"table {logged.name} is not what the schema history says: {found}")
    there = fields_of(body)
    added = ((number, raw) for number, raw in _fields(table, server_version, there) if raw and number not in there)
    return body + b"".join(bytes([number]) + _packed(len(raw)) + raw for number, raw in added)


def difference(logged: TableSchema, known: TableSchema) -> str:
    """The first one, of what the log says; empty where there is none."""
    mine, theirs = logged.columns, known.columns
    if len(mine) != len(theirs):
        return f"{len(mine)} columns in the log, {len(theirs)} in the history"
    for one, other in zip(mine, theirs, strict=True):
        for what, log, history in _facts(one, other, logged):
            if log != history:
                return f"column {other.name} has the {what} {log} in the log, {history} in the history"
    if not is_nameless(logged) and known.key and logged.key != known.key:
        return f"the key is {', '.join(logged.key) or 'none'} in the log, {', '.join(known.key)} in the history"
    return ""


def _facts(logged: Column, known: Column, table: TableSchema) -> Iterator[tuple[str, object, object]]:
    if not is_nameless(table):
        yield "name", logged.name, known.name
    wire = logged.type if known.size else _OLD.get(logged.type, logged.type)
    yield "type", wire.name, known.type.name
    yield "size", logged.size, known.size
    yield "digits", (logged.precision, logged.scale), (known.precision, known.scale)
    yield "property to be null", logged.nullable, known.nullable
    if table.has_signs and logged.type is not WireType.YEAR:
        yield "property to be unsigned", logged.unsigned, known.unsigned
    if logged.charset:
        yield "charset", logged.charset, known.charset
    if logged.labels and known.labels and are_exact_labels(known):
        yield "labels", logged.labels, known.labels


def _fields(table: Table, server_version: str, there: frozenset[int]) -> Iterator[tuple[MapField, bytes]]:
    """Of those whose form depends on others that are there, only what goes with these."""
    columns, fields = table.schema.columns, table.fields
    signed = [column for column in columns if column.type in types_with_sign(server_version)]
    yield MapField.SIGNEDNESS, _bits(column.unsigned or column.type is WireType.YEAR for column in signed)
    if MapField.DEFAULT_CHARSET not in there:
        text = [column for column in columns if column.type in types_with_charset(server_version)]
        yield MapField.COLUMN_CHARSET, b"".join(map(_collation, text))
    yield MapField.NAMES, b"".join(_text(column.name.encode()) for column in columns)
    for number, wire in ((MapField.SET_LABELS, WireType.SET), (MapField.ENUM_LABELS, WireType.ENUM)):
        pairs = [pair for pair in zip(columns, fields, strict=True) if pair[0].type is wire]
        yield number, b"".join(_labels(*pair) for pair in pairs)
    geometries = [column.geometry for column in columns if column.type is WireType.GEOMETRY]
    yield MapField.GEOMETRY_KINDS, b"".join(map(_packed, geometries))
    yield from _key(table)
    if MapField.LABEL_DEFAULT_CHARSET not in there:
        yield MapField.LABEL_COLUMN_CHARSET, b"".join(_collation(each) for each in columns if each.type in LABELLED)
    if not table.is_mariadb:
        yield MapField.VISIBILITY, _bits(column.is_visible for column in columns)
    dimensions = [column.dimension for column in columns if column.type is WireType.VECTOR]
    yield MapField.DIMENSIONS, b"".join(map(_packed, dimensions))


def _key(table: Table) -> Iterator[tuple[MapField, bytes]]:
    index = table.index("PRIMARY") or next((each for each in table.indexes if _is_key(each, table)), None)
    if index is None:
        return
    places = {field.name: i for i, field in enumerate(table.fields)}
    parts = [(places[part.column], part.prefix) for part in index.parts]
    if any(prefix for _, prefix in parts):
        yield MapField.KEY_WITH_PREFIX, b"".join(_packed(number) for part in parts for number in part)
    else:
        yield MapField.KEY, b"".join(_packed(place) for place, _ in parts)


def _is_key(index: Index, table: Table) -> bool:
    """Without a primary key servers take the first unique one of whole columns that are never null."""
    fields = [table.field(part.column) for part in index.parts if part.column and not part.prefix]
    is_whole = len(fields) == len(index.parts) and not index.is_hash
    return index.kind is KeyKind.UNIQUE and is_whole and all(field and not field.is_nullable for field in fields)


def _labels(column: Column, field: Field) -> bytes:
    """Where they cannot be told there are none, and the values stay numbers."""
    labels = [label for label in field.type.labels if isinstance(label, bytes)] if are_exact_labels(column) else []
    return _packed(len(labels)) + b"".join(map(_text, labels))


def _collation(column: Column) -> bytes:
    if column.type in (WireType.GEOMETRY, WireType.VECTOR):
        return _packed(_BYTES)
    number = collation_of(column.charset)
    if not number:
        raise SchemaError(f"the charset of column {column.name} is not known: {column.charset or 'none'}")
    return _packed(number)


def _bits(flags: Iterable[bool]) -> bytes:
    """The first has the highest bit."""
    found: Sequence[bool] = list(flags)
    raw = bytearray((len(found) + 7) // 8)
    for i, flag in enumerate(found):
        raw[i >> 3] |= flag << (7 - (i & 7))
    return bytes(raw)


def _text(raw: bytes) -> bytes:
    return _packed(len(raw)) + raw


def _packed(number: int) -> bytes:
    """Length-encoded integer."""
    if number < 251:
        return bytes([number])
    if number < 1 << 16:
        return b"\xfc" + number.to_bytes(2, "little")
    return b"\xfd" + number.to_bytes(3, "little")
