"""A TABLE_MAP body without full metadata → the same with it, from what the schema history knows of the table.

What the body says stays as it is; what it lacks is written as a server with `binlog_row_metadata=FULL` does. So rows
can be decoded later with the body alone. A body that does not fit the history's table is an error: the rows are of
another version of it, and it is not known which.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from penstock.binlog.events.map_field import LABELLED, MapField, types_with_charset, types_with_sign
from penstock.binlog.events.table_map import fields_of, parse_table_map
from penstock.binlog.values.charset import NO_COLLATION, collation_id_of
from penstock.errors import SchemaError
from penstock.model import Column, TableSchema, WireType
from penstock.model.table import are_exact_labels, is_nameless
from penstock.schema.collation import built_in_collation, max_character_bytes
from penstock.schema.ddl.key import KeyKind
from penstock.schema.identity_cache import IdentityCache
from penstock.schema.label import decode_label, normalize_label
from penstock.schema.shape import ColumnDefinition, IndexDefinition, TableDefinition

# Tables that an old server made keep the times of that day until they are altered.
_OLD = {WireType.TIME: WireType.TIME2, WireType.DATETIME: WireType.DATETIME2, WireType.TIMESTAMP: WireType.TIMESTAMP2}
_BYTES = 63  # the collation `binary`
_TEXTS = frozenset(
    {WireType.VARCHAR, WireType.STRING, WireType.BLOB, WireType.VARCHAR_COMPRESSED, WireType.BLOB_COMPRESSED}
)
_NULLABLE = "property to be null"

# Tables that differ in their names only are compared and completed once.
_MAX_SHAPES = 1 << 12
_DIFFERENCES, _ADDITIONS = IdentityCache[str](_MAX_SHAPES), IdentityCache[bytes](_MAX_SHAPES)


def complete_table_map(
    body: bytes,
    table: TableDefinition,
    server_version: str,
    *,
    unsure: frozenset[str] = frozenset(),
    with_declared: bool = False,
) -> bytes:
    """Return a TABLE_MAP body with the names, keys and charsets that the table's definition has beyond it. Raises
    SchemaError where the two do not fit.

    The charset of the columns that are `unsure` is the log's, or unknown. `with_declared` adds the types that no server
    writes, in a field that only this package reads: which BINARY columns of MariaDB are UUID, INET4 or INET6.
    """
    logged = parse_table_map(body, server_version)
    difference = find_difference(logged, table.schema, unsure)
    if difference:
        raise SchemaError(f"table {logged.name} is not what the schema history says: {difference}")

    def make() -> bytes:
        there = fields_of(body)
        fields = list(_missing_fields(_apply_logged_charsets(table, logged, unsure), server_version, there, unsure))
        if with_declared and any(column.declared for column in table.schema.columns):
            fields.append(
                (MapField.DECLARED, b"".join(_encode_text(each.declared.encode()) for each in table.schema.columns))
            )
        added = ((number, raw) for number, raw in fields if raw and number not in there)
        return b"".join(bytes([number]) + _encode_length(len(raw)) + raw for number, raw in added)

    others = table.indexes, table.is_mariadb, server_version, unsure, with_declared
    return body + _ADDITIONS.get((logged.columns, table.fields), others, make)


def find_difference(logged: TableSchema, known: TableSchema, unsure: frozenset[str] = frozenset()) -> str:
    """Return the first difference between a table of the log and the known one, in words; empty where there is none.
    Charsets of `unsure` columns are not compared."""
    others = logged.key, logged.has_signs, known.key, unsure
    return _DIFFERENCES.get((logged.columns, known.columns), others, lambda: _find_difference(logged, known, unsure))


def _find_difference(logged: TableSchema, known: TableSchema, unsure: frozenset[str]) -> str:
    mine, theirs = logged.columns, known.columns
    if len(mine) != len(theirs):
        return f"{len(mine)} columns in the log, {len(theirs)} in the history"
    # Of a table on the inner side of an outer join, a server logs every column as one that can be null.
    may_be_outer = all(column.nullable for column in mine)
    for mine_column, other in zip(mine, theirs, strict=True):
        facts = _compare_facts_without_charset if other.name in unsure else _compare_facts
        for fact, log, history in facts(mine_column, other, logged):
            if log != history and not (fact == _NULLABLE and may_be_outer):
                return f"column {other.name} has the {fact} {log} in the log, {history} in the history"
    if not is_nameless(logged) and known.key and logged.key != known.key:
        return f"the key is {', '.join(logged.key) or 'none'} in the log, {', '.join(known.key)} in the history"
    return ""


def _compare_facts(logged: Column, known: Column, table: TableSchema) -> Iterator[tuple[str, object, object]]:
    """Yield what is compared of a column: the name of the property, its value in the log, and its known value."""
    if not is_nameless(table):
        yield "name", logged.name, known.name
    wire = logged.type if known.size else _OLD.get(logged.type, logged.type)
    yield "type", wire.name, known.type.name
    yield "size", logged.size, known.size
    yield "digits", (logged.precision, logged.scale), (known.precision, known.scale)
    yield _NULLABLE, logged.nullable, known.nullable
    if table.has_signs and logged.type is not WireType.YEAR:
        yield "property to be unsigned", logged.unsigned, known.unsigned
    if logged.charset:
        yield "charset", logged.charset, known.charset
    if logged.labels and known.labels and are_exact_labels(known):
        yield "labels", logged.labels, known.labels


def _compare_facts_without_charset(
    logged: Column, known: Column, table: TableSchema
) -> Iterator[tuple[str, object, object]]:
    """Yield what is compared of a column that does not depend on its charset."""
    if logged.type in LABELLED:
        yield from _compare_facts(replace(logged, charset="", labels=()), known, table)
        return
    if not is_nameless(table):
        yield "name", logged.name, known.name
    yield _NULLABLE, logged.nullable, known.nullable
    if not _fits_some_charset(logged, known):
        yield "type", f"{logged.type.name}({logged.size})", f"{known.type.name}({known.size})"


def _fits_some_charset(logged: Column, known: Column) -> bool:
    """Return whether a text column of the log can be this one, in whatever charset."""
    if logged.type not in _TEXTS or known.type not in _TEXTS:
        return False
    if logged.type is not known.type or logged.type in {WireType.BLOB, WireType.BLOB_COMPRESSED}:
        return True  # where characters take more bytes, the server may make a longer TEXT of either
    extra = logged.type is WireType.VARCHAR_COMPRESSED
    characters = (known.size - extra) // max_character_bytes(known.charset)
    return logged.size - extra in {characters * width for width in range(1, 5)}


def _apply_logged_charsets(table: TableDefinition, logged: TableSchema, unsure: frozenset[str]) -> TableDefinition:
    """Return the table with the labels of unsure columns in the charset in which the log says that they are."""
    if not unsure:
        return table
    fields: list[ColumnDefinition] = []
    for field, column in zip(table.fields, logged.columns, strict=True):
        labels = [label for label in field.type.labels if isinstance(label, bytes)]
        if field.name in unsure and labels and column.charset and column.charset != field.charset:
            labels = tuple(normalize_label(decode_label(label, field.charset), column.charset) for label in labels)
            collation = built_in_collation(column.charset)
            field = replace(field, type=replace(field.type, labels=labels), collation=collation)  # noqa: PLW2901
        fields.append(field)
    return replace(table, fields=tuple(fields))


def _missing_fields(
    table: TableDefinition, server_version: str, there: frozenset[int], unsure: frozenset[str]
) -> Iterator[tuple[MapField, bytes]]:
    """Yield the fields that the body lacks; of those whose form depends on existing fields, only what goes with
    these."""
    columns, fields = table.schema.columns, table.fields
    signed = [column for column in columns if column.type in types_with_sign(server_version)]
    yield MapField.SIGNEDNESS, _pack_bits(column.unsigned or column.type is WireType.YEAR for column in signed)
    if MapField.DEFAULT_CHARSET not in there:
        text = [column for column in columns if column.type in types_with_charset(server_version)]
        yield (
            MapField.COLUMN_CHARSET,
            b"".join(
                _encode_length(NO_COLLATION) if column.name in unsure else _encode_collation(column) for column in text
            ),
        )
    yield MapField.NAMES, b"".join(_encode_text(column.name.encode()) for column in columns)
    for number, wire in ((MapField.SET_LABELS, WireType.SET), (MapField.ENUM_LABELS, WireType.ENUM)):
        pairs = [pair for pair in zip(columns, fields, strict=True) if pair[0].type is wire]
        yield number, b"".join(_encode_labels(*pair) for pair in pairs)
    geometries = [column.geometry for column in columns if column.type is WireType.GEOMETRY]
    yield MapField.GEOMETRY_KINDS, b"".join(map(_encode_length, geometries))
    yield from _key_field(table)
    if MapField.LABEL_DEFAULT_CHARSET not in there:
        yield (
            MapField.LABEL_COLUMN_CHARSET,
            b"".join(_encode_collation(each) for each in columns if each.type in LABELLED),
        )
    if not table.is_mariadb:
        yield MapField.VISIBILITY, _pack_bits(column.is_visible for column in columns)
    dimensions = [column.dimension for column in columns if column.type is WireType.VECTOR]
    yield MapField.DIMENSIONS, b"".join(map(_encode_length, dimensions))


def _key_field(table: TableDefinition) -> Iterator[tuple[MapField, bytes]]:
    """Yield the optional field that holds the primary key, with its bytes."""
    index = table.find_index("PRIMARY") or next((each for each in table.indexes if _is_row_key(each, table)), None)
    if index is None:
        return
    numbers = {field.name: i for i, field in enumerate(table.fields)}
    parts = [(numbers[part.column], part.prefix) for part in index.parts]
    if any(prefix for _, prefix in parts):
        yield MapField.KEY_WITH_PREFIX, b"".join(_encode_length(number) for part in parts for number in part)
    else:
        yield MapField.KEY, b"".join(_encode_length(number) for number, _ in parts)


def _is_row_key(index: IndexDefinition, table: TableDefinition) -> bool:
    """Return whether an index can identify rows in place of a primary key: it is unique, and all its parts are whole
    columns that are NOT NULL. Of several, servers take the first."""
    fields = [table.find_column(part.column) for part in index.parts if part.column and not part.prefix]
    is_whole = len(fields) == len(index.parts) and not index.is_hash
    return index.kind is KeyKind.UNIQUE and is_whole and all(field and not field.is_nullable for field in fields)


def _encode_labels(column: Column, field: ColumnDefinition) -> bytes:
    """Return the labels of a column as bytes; none where they cannot be told, so that the values stay numbers."""
    labels = [label for label in field.type.labels if isinstance(label, bytes)] if are_exact_labels(column) else []
    return _encode_length(len(labels)) + b"".join(map(_encode_text, labels))


def _encode_collation(column: Column) -> bytes:
    """Return the collation number of a column as a length-encoded integer."""
    if column.type in (WireType.GEOMETRY, WireType.VECTOR):
        return _encode_length(_BYTES)
    number = collation_id_of(column.charset)
    if not number:
        raise SchemaError(f"the charset of column {column.name} is not known: {column.charset or 'none'}")
    return _encode_length(number)


def _pack_bits(flags: Iterable[bool]) -> bytes:
    """Pack flags into bytes; the first flag is the highest bit."""
    bits: Sequence[bool] = list(flags)
    raw = bytearray((len(bits) + 7) // 8)
    for i, flag in enumerate(bits):
        raw[i >> 3] |= flag << (7 - (i & 7))
    return bytes(raw)


def _encode_text(raw: bytes) -> bytes:
    """Return bytes with their length before them."""
    return _encode_length(len(raw)) + raw


def _encode_length(number: int) -> bytes:
    """Return a number as a length-encoded integer."""
    if number < 251:
        return bytes([number])
    if number < 1 << 16:
        return b"\xfc" + number.to_bytes(2, "little")
    return b"\xfd" + number.to_bytes(3, "little")
