"""TABLE_MAP event → TableSchema.

    table id 6 | flags 2 | database: length 1, text, 0 | table: length 1, text, 0 | columns n (packed)
    | type n×1 | metadata: length (packed), bytes | nullable bitmap | then fields: type 1, length (packed), value

The optional fields carry signedness, charsets and kinds of geometry always (MySQL 8.0, MariaDB with MINIMAL), names,
labels, the key and visibility only with `binlog_row_metadata=FULL`; MySQL 5.7 has none. A column without a name is
called @1, @2 … by its number, as the servers' own tools do.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from penstock.binlog.events.layout import HEADER, EventType
from penstock.binlog.events.map_field import LABELLED, MapField, types_with_charset, types_with_sign
from penstock.binlog.events.problem import EventProblemError, event_error
from penstock.binlog.values.charset import NO_COLLATION, charset_of_collation_id
from penstock.binlog.values.problem import ValueProblemError
from penstock.binlog.values.text import decode_text
from penstock.errors import SchemaError
from penstock.model import Column, TableName, TableSchema, WireType

_VARCHAR = {WireType.VARCHAR, WireType.VARCHAR_COMPRESSED}
_TWO_BYTES = {*_VARCHAR, WireType.NEWDECIMAL, WireType.STRING, WireType.ENUM, WireType.SET, WireType.BIT}
_ONE_BYTE = {
    WireType.FLOAT, WireType.DOUBLE, WireType.BLOB, WireType.JSON, WireType.GEOMETRY, WireType.VECTOR,
    WireType.TIMESTAMP2, WireType.DATETIME2, WireType.TIME2, WireType.BLOB_COMPRESSED,
}  # fmt: skip
_LENGTH_FIRST = {WireType.BLOB, WireType.BLOB_COMPRESSED, WireType.JSON, WireType.GEOMETRY, WireType.VECTOR}
_FRACTION = {WireType.TIMESTAMP2, WireType.DATETIME2, WireType.TIME2}
_VAR_STRING, _NEWDATE, _TYPED_ARRAY = 253, 14, 20
_NAMES_AT = 8
_DECLARED_SIZES = {"uuid": 16, "inet6": 16, "inet4": 4}


class _MapReader:
    """A window of the body; problems name the byte of the body that they are at."""

    def __init__(self, body: bytes, at: int = 0, stop: int | None = None) -> None:
        self.body, self.at = body, at
        self.stop = len(body) if stop is None else stop

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes, and step over them. Raises EventProblemError when fewer are left."""
        if self.at + size > self.stop:
            raise EventProblemError(f"it ends early: {size} bytes wanted at {self.at} of {self.stop}", self.at)
        self.at += size
        return self.body[self.at - size : self.at]

    def rest(self) -> bytes:
        """Return all remaining bytes."""
        return self.take(self.stop - self.at)

    def window(self, size: int) -> "_MapReader":
        """Return a reader of the next `size` bytes, and step over them."""
        self.take(size)
        return _MapReader(self.body, self.at - size, self.at)

    def packed(self) -> int:
        """Return the next length-encoded integer."""
        first = self.take(1)[0]
        if first < 251:
            return first
        if first in (252, 253, 254):
            return int.from_bytes(self.take({252: 2, 253: 3, 254: 8}[first]), "little")
        raise EventProblemError(f"it holds no length at {self.at - 1}", self.at - 1)

    def text(self, charset: str = "utf8mb4") -> str:
        """Return the next text, whose length comes before it."""
        return decode_text(charset, self.take(self.packed()))

    @property
    def is_done(self) -> bool:
        """Return whether all bytes were read."""
        return self.at >= self.stop

    def numbers(self) -> Iterator[int]:
        """Yield the remaining bytes as length-encoded integers."""
        while not self.is_done:
            yield self.packed()


_Fields = dict[int, _MapReader]
_NOTHING = _MapReader(b"")
_NAMELESS = TableName("", "")


@lru_cache(maxsize=1 << 16)
def table_name(body: bytes) -> TableName:
    """Return the name in a TABLE_MAP body, without parsing the rest."""
    try:
        second = _NAMES_AT + body[_NAMES_AT] + 2
        if (end := second + body[second] + 2) <= len(body):
            return TableName(body[_NAMES_AT + 1 : second - 1].decode(), body[second + 1 : end - 1].decode())
    except (IndexError, UnicodeDecodeError):
        pass  # once more, to say where in the body it is
    try:
        return _table_name(_MapReader(body, _NAMES_AT))
    except EventProblemError as problem:
        raise event_error(EventType.TABLE_MAP, problem.what, body[problem.byte :]) from None


def check_names(body: bytes) -> None:
    """Raise EventProblemError for names that cannot be read, at a byte of the event; the reader adds the position."""
    try:
        _table_name(_MapReader(body, _NAMES_AT))
    except EventProblemError as problem:
        raise EventProblemError(problem.what, HEADER + problem.byte) from None


def _end_of_names(body: bytes) -> int:
    """Return where the names of a valid body end: length 1, database, 0 | length 1, table, 0."""
    second = _NAMES_AT + body[_NAMES_AT] + 2
    return second + body[second] + 2


def _table_name(reader: _MapReader) -> TableName:
    at = reader.at
    schema, table = (reader.take(reader.take(1)[0] + 1)[:-1] for _ in range(2))
    try:
        return TableName(schema.decode(), table.decode())
    except UnicodeDecodeError:
        raise EventProblemError(f"it has no readable names: {schema!r}, {table!r}", at) from None


@lru_cache(maxsize=1 << 16)
def parse_table_map(body: bytes, server_version: str) -> TableSchema:
    """Return the schema of a table from the body of its TABLE_MAP event: the bytes from the table id on, without the
    checksum."""
    name = table_name(body)
    try:
        return _parse_shape(body[_end_of_names(body) :], server_version).with_name(name)
    except (EventProblemError, SchemaError):
        pass  # once more, to say where in this table's map it is
    try:
        return _schema(name, _MapReader(body, _NAMES_AT), server_version)
    except EventProblemError as problem:
        raise event_error(EventType.TABLE_MAP, problem.what, body[problem.byte :], table=name) from None


@lru_cache(maxsize=12_000)
def _parse_shape(raw: bytes, server_version: str) -> TableSchema:
    """Parse what comes after the names: tables that differ in nothing else are parsed once, and share their columns."""
    return _schema(_NAMELESS, _MapReader(b"\0\0\0\0" + raw), server_version)


def fields_of(body: bytes) -> frozenset[int]:
    """Return the types of the optional fields that a valid body has."""
    reader = _MapReader(body, _NAMES_AT)
    _table_name(reader)
    count = reader.packed()
    reader.take(count)
    reader.take(reader.packed() + (count + 7) // 8)
    return frozenset(_fields(reader))


def _fields(reader: _MapReader) -> _Fields:
    """Return the optional fields, which are the rest of a body, by type."""
    fields: _Fields = {}
    while not reader.is_done:
        field = reader.take(1)[0]
        fields[field] = reader.window(reader.packed())
    return fields


def _schema(name: TableName, reader: _MapReader, server_version: str) -> TableSchema:
    _table_name(reader)
    types = reader.take(reader.packed())
    if not types:
        raise EventProblemError("it has no columns", reader.at - 1)
    metadata = reader.window(reader.packed())
    nullable = reader.take((len(types) + 7) // 8)
    first = reader.at
    fields = _fields(reader)
    names = _names(len(types), fields)
    columns = [
        replace(_column(code, metadata, names[i], name), nullable=bool(nullable[i >> 3] >> (i & 7) & 1))
        for i, code in enumerate(types)
    ]
    schema = _with_fields(name, columns, fields, server_version, first)
    return schema.with_hashes_hidden() if "MariaDB" in server_version else schema


def _names(count: int, fields: _Fields) -> list[str]:
    if MapField.NAMES not in fields:
        return [f"@{i}" for i in range(1, count + 1)]
    field = fields[MapField.NAMES]
    names = dict[str, None]()
    for _ in range(count):
        at, name = field.at, field.text()
        if name in names:
            raise EventProblemError(f"two of its columns are named {name}", at)
        names[name] = None
    return list(names)


def _column(code: int, metadata: _MapReader, name: str, table: TableName) -> Column:
    """Return a column from its type byte and its share of the metadata block."""
    if code == _TYPED_ARRAY:
        return _typed_array(metadata, name, table)
    code = {_VAR_STRING: WireType.VARCHAR, _NEWDATE: WireType.DATE}.get(code, code)
    if 249 <= code <= 251:
        code = WireType.BLOB
    try:
        wire = WireType(code)
    except ValueError:
        raise SchemaError(f"column {table}.{name} is of type {code}, which is not known") from None
    at = metadata.at
    raw = metadata.take(1 if wire in _ONE_BYTE else 2 if wire in _TWO_BYTES else 0)
    column = _sized(wire, raw)
    if not _is_possible(column):
        raise EventProblemError(f"column {name} is a {wire.name} with the metadata {raw.hex(' ')}", at)
    return replace(column, name=name)


def _typed_array(metadata: _MapReader, name: str, table: TableName) -> Column:
    """Return the hidden column of an index over the values of an array: type of the elements 1 | their metadata.

    Early releases of MySQL 8.0 list it in the table map, behind all others; its values are JSON.
    """
    at, element = metadata.at, metadata.take(1)[0]
    if element == _TYPED_ARRAY:
        raise EventProblemError(f"column {name} is an array of arrays", at)
    if element == WireType.VARCHAR:
        metadata.take(3)  # longer than any VARCHAR
    else:
        _column(element, metadata, name, table)
    return Column(name, WireType.JSON, size=4, is_visible=False)


def _sized(wire: WireType, raw: bytes) -> Column:
    if len(raw) < 2:
        return Column("", wire, size=raw[0] if raw else 0)
    first, second = raw
    if wire in _VARCHAR:
        return Column("", wire, size=first | second << 8)
    if wire is WireType.NEWDECIMAL:
        return Column("", wire, precision=first, scale=second)
    if wire is WireType.BIT:
        return Column("", wire, size=first + second * 8)
    # CHAR, ENUM and SET share a type code; lengths over 255 hide in two bits of the real type
    real = {kind.value: kind for kind in (WireType.STRING, *LABELLED)}.get(first | 0x30)
    return Column("", real or wire, size=second | ((first & 0x30) ^ 0x30) << 4 if real else -1)


def _is_possible(column: Column) -> bool:
    """Return whether a column can have its size: others come from broken bytes, and would mislead the kernels."""
    if column.type is WireType.NEWDECIMAL:
        return 1 <= column.precision <= 65 and column.scale <= min(column.precision, 38)
    if column.type in _LENGTH_FIRST:
        return 1 <= column.size <= 4
    if column.type is WireType.BIT:
        return 1 <= column.size <= 64
    if column.type in LABELLED:
        return 1 <= column.size <= (2 if column.type is WireType.ENUM else 8)
    return 0 <= column.size <= (6 if column.type in _FRACTION else 65535)


def _with_fields(
    name: TableName, columns: list[Column], fields: _Fields, server_version: str, first: int
) -> TableSchema:
    """Return the schema with what the optional fields say; `first` is the byte at which the fields begin."""
    signed = types_with_sign(server_version)
    for i in _marked(columns, signed, fields.get(MapField.SIGNEDNESS, _NOTHING).rest()):
        columns[i] = replace(columns[i], unsigned=True)
    _set_charsets(
        columns,
        types_with_charset(server_version),
        fields.get(MapField.DEFAULT_CHARSET),
        fields.get(MapField.COLUMN_CHARSET),
    )
    _set_charsets(
        columns, LABELLED, fields.get(MapField.LABEL_DEFAULT_CHARSET), fields.get(MapField.LABEL_COLUMN_CHARSET)
    )
    for field, wire in ((MapField.SET_LABELS, WireType.SET), (MapField.ENUM_LABELS, WireType.ENUM)):
        labels = fields.get(field, _NOTHING)
        for i, column in enumerate(columns):
            if column.type is wire and not labels.is_done:
                raw = [labels.take(labels.packed()) for _ in range(labels.packed())]
                columns[i] = replace(column, labels=_labels(raw, column.charset))
    _set_numbers(columns, WireType.GEOMETRY, "geometry", fields.get(MapField.GEOMETRY_KINDS, _NOTHING))
    _set_numbers(columns, WireType.VECTOR, "dimension", fields.get(MapField.DIMENSIONS, _NOTHING))
    if MapField.DECLARED in fields:
        columns = [_with_declared(column, fields[MapField.DECLARED].text()) for column in columns]
    if MapField.VISIBILITY in fields:
        visible = set(_marked(columns, frozenset(WireType), fields[MapField.VISIBILITY].rest()))
        columns = [replace(column, is_visible=i in visible) for i, column in enumerate(columns)]

    key = list(fields.get(MapField.KEY, _NOTHING).numbers())
    prefixes = [0] * len(key)
    if MapField.KEY_WITH_PREFIX in fields:
        pairs = list(fields[MapField.KEY_WITH_PREFIX].numbers())
        key, prefixes = pairs[::2], pairs[1::2]
    if any(i >= len(columns) for i in key):
        raise EventProblemError(f"it has a key on column {max(key)} of {len(columns)}", first)
    shown = tuple(prefixes) if any(prefixes) else ()
    has_signs = MapField.SIGNEDNESS in fields or not any(column.type in signed for column in columns)
    return TableSchema(name, tuple(columns), tuple(columns[i].name for i in key), has_signs, shown)


def _with_declared(column: Column, declared: str) -> Column:
    """Return the column with its declared type, if it can have that."""
    if declared == "vector" and column.type is WireType.VARCHAR:
        return replace(column, declared=declared)
    fits = column.type is WireType.STRING and _DECLARED_SIZES.get(declared) == column.size
    return replace(column, declared=declared) if fits else column


def _labels(raw: list[bytes], charset: str) -> tuple[str, ...]:
    """Return the labels of an ENUM or SET. Early MySQL 8.0 does not say their charset: labels that are not plain UTF-8
    then stay numbers."""
    try:
        if charset:
            return tuple(decode_text(charset, label) for label in raw)
        labels = tuple(label.decode() for label in raw)
    except (UnicodeDecodeError, ValueProblemError):
        return ()
    return labels if all(label.isprintable() for label in labels) else ()


def _marked(columns: list[Column], types: frozenset[WireType], bits: bytes) -> list[int]:
    """Return the indexes of the columns of these types whose bit is set; the first column has the highest bit."""
    indexes = [i for i, column in enumerate(columns) if column.type in types]
    return [i for k, i in enumerate(indexes) if k >> 3 < len(bits) and bits[k >> 3] << (k & 7) & 0x80]


def _set_numbers(columns: list[Column], wire: WireType, name: str, numbers: _MapReader) -> None:
    """Set one number for each column of that type."""
    indexes = [i for i, column in enumerate(columns) if column.type is wire]
    for i, number in zip(indexes, numbers.numbers(), strict=False):
        columns[i] = replace(columns[i], **{name: number})


def _set_charsets(
    columns: list[Column], types: frozenset[WireType], default: _MapReader | None, each: _MapReader | None
) -> None:
    """Set the charsets of columns: either one default with exceptions (index, collation)*, or one collation per column
    of these types."""
    indexes = [i for i, column in enumerate(columns) if column.type in types]
    collations: list[int] = []
    if each is not None:
        collations = list(each.numbers())
    elif default is not None:
        at, numbers = default.at, list(default.numbers())
        if len(numbers) % 2 == 0:
            raise EventProblemError("it has a broken list of charsets", at)
        exceptions = dict(zip(numbers[1::2], numbers[2::2], strict=True))
        collations = [exceptions.get(k, numbers[0]) for k in range(len(indexes))]
    for i, collation in zip(indexes, collations, strict=False):
        if columns[i].type not in (WireType.GEOMETRY, WireType.VECTOR):
            columns[i] = replace(
                columns[i], charset="" if collation == NO_COLLATION else charset_of_collation_id(collation)
            )


def table_map_body(event: memoryview, checksum: int) -> bytes:
    """Return the body of a TABLE_MAP event, without its header and its checksum of `checksum` bytes."""
    return bytes(event[HEADER : len(event) - checksum])
