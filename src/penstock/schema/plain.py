"""A catalogue as plain data that JSON can hold, and back without a difference.

Lists instead of objects, and no defaults at their end: ten thousand tables are some megabytes.

catalogue  {"format": 1, "server": [is_mariadb, version, lower case, utf8 is utf8mb3, [[charset, collation], …]],
            "databases": [database, …], "temporary": [[thread, database, table], …]}
database   [name, collation, [table, …], [view, …], [[name of one that is unknown, since which statement], …]]
table      [name, collation, [field, …], [index, …], flags, engine, row format, [period, …]]
field      [name, kind, flags, length, collation, scale, [label, …], width]; the table's collation is written as *
index      [name, part or [part, …], flags, kind]; a part is a name, or [name, prefix]
Labels are bytes, written as the characters of the same numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from enum import IntEnum
from typing import Any, cast

from penstock.errors import SchemaError
from penstock.model import TableName
from penstock.schema.catalogue import Catalogue
from penstock.schema.database import Database
from penstock.schema.ddl.data_type import DataType
from penstock.schema.ddl.key import KeyKind
from penstock.schema.dialect import ServerProfile
from penstock.schema.shape import ColumnDefinition, IndexDefinition, IndexPart, TableDefinition, fold
from penstock.schema.shared_map import SharedMap

_FORMAT = 1
_SAME = "*"
_Row = Sequence[Any]


class _FieldFlag(IntEnum):
    NOT_NULL = 1
    UNSIGNED = 2
    AUTO = 4
    GENERATED = 8
    INVISIBLE = 16
    COMPRESSED = 32
    ROW_END = 64
    HIDDEN = 128
    SIZED = 256
    ZEROFILL = 512


_TYPE_FLAGS = _FieldFlag.UNSIGNED | _FieldFlag.COMPRESSED | _FieldFlag.SIZED | _FieldFlag.ZEROFILL


class _IndexFlag(IntEnum):
    IMPLIED = 1
    HASH = 2


class _TableFlag(IntEnum):
    VERSIONED = 1
    MARIADB = 2


def catalogue_to_plain(catalogue: Catalogue) -> dict[str, Any]:
    """Return a catalogue as plain data that JSON can hold."""
    databases = sorted(catalogue.databases.values(), key=lambda database: database.name)
    return {
        "format": _FORMAT,
        "server": server_to_plain(catalogue.server),
        "databases": [_database_row(database) for database in databases],
        "temporary": sorted([thread, name.schema, name.table] for thread, name in catalogue.temporary),
    }


def catalogue_from_plain(data: Mapping[str, Any]) -> Catalogue:
    """Return the schema catalogue from its JSON form. Raises SchemaError when another release has written it in another
    format."""
    if data.get("format") != _FORMAT:
        raise SchemaError(f"a catalogue of format {data.get('format')} was written by another release of Penstock")
    server = server_from_plain(data["server"])
    reading = _PlainDecoder(server)
    databases = SharedMap[Database].from_items(map(reading.database, data["databases"]))
    temporary = frozenset((thread, TableName(schema, table)) for thread, schema, table in data["temporary"])
    return Catalogue(server, databases, temporary)


def table_to_plain(table: TableDefinition) -> list[Any]:
    """Return a table as plain data, without the name of its database."""
    flags = _TableFlag.VERSIONED * table.is_versioned | _TableFlag.MARIADB * table.is_mariadb
    return _trim_defaults(
        [
            table.name.table,
            table.collation,
            [_field_row(field, table.collation) for field in table.fields],
            [_index_row(index) for index in table.indexes],
            flags,
            table.engine,
            table.row_format,
            [list(period) for period in table.periods],
        ],
        [None, None, None, None, 0, "innodb", "", []],
    )


def table_from_plain(row: _Row, database: str) -> TableDefinition:
    """Return the table that `table_to_plain` made plain data of."""
    return _PlainDecoder(ServerProfile()).table(row, database)


def server_to_plain(server: ServerProfile) -> list[Any]:
    """Return a server profile as plain data."""
    *facts, collations = astuple(server)
    return [*facts, [list(pair) for pair in collations]]


def server_from_plain(row: _Row) -> ServerProfile:
    """Return the server profile that `server_to_plain` made plain data of."""
    is_mariadb, version, case, is_mb3, collations = row
    return ServerProfile(
        is_mariadb, version, case, is_mb3, tuple((charset, collation) for charset, collation in collations)
    )


def _database_row(database: Database) -> list[Any]:
    tables = sorted(database.tables.values(), key=lambda table: table.name)
    rows, unknown = (
        [table_to_plain(table) for table in tables],
        [list(pair) for pair in sorted(database.unknown.items())],
    )
    return _trim_defaults(
        [database.name, database.collation, rows, sorted(database.views), unknown], [None, None, [], [], []]
    )


def _field_row(field: ColumnDefinition, table_collation: str) -> list[Any]:
    type_ = field.type
    flags = (
        _FieldFlag.NOT_NULL * (not field.is_nullable)
        | _FieldFlag.UNSIGNED * type_.is_unsigned
        | _FieldFlag.AUTO * field.is_auto
        | _FieldFlag.GENERATED * field.is_generated
        | _FieldFlag.INVISIBLE * (not field.is_visible)
        | _FieldFlag.COMPRESSED * type_.is_compressed
        | _FieldFlag.ROW_END * field.is_row_end
        | _FieldFlag.HIDDEN * field.is_hidden
        | _FieldFlag.SIZED * type_.is_sized
        | _FieldFlag.ZEROFILL * type_.is_zerofill
    )
    collation = _SAME if field.collation and field.collation == table_collation else field.collation
    labels = [label.decode("latin-1") for label in type_.labels if isinstance(label, bytes)]
    row = [field.name, type_.kind, flags, type_.length, collation, type_.scale, labels, type_.width]
    return _trim_defaults(row, [None, None, 0, 0, "", 0, [], 0])


def _index_row(index: IndexDefinition) -> list[Any]:
    parts = [[part.column, part.prefix] if part.prefix else part.column for part in index.parts]
    flags = _IndexFlag.IMPLIED * index.is_implied | _IndexFlag.HASH * index.is_hash
    only = parts[0] if len(parts) == 1 and isinstance(parts[0], str) else parts
    return _trim_defaults([index.name, only, flags, index.kind.value], [None, None, 0, KeyKind.PLAIN.value])


def _trim_defaults(row: list[Any], defaults: list[Any]) -> list[Any]:
    end = len(row)
    while row[end - 1] == defaults[end - 1]:
        end -= 1
    return row[:end]


class _PlainDecoder:
    """Equal types are one object."""

    def __init__(self, server: ServerProfile) -> None:
        self._server = server
        self._types: dict[tuple[Any, ...], DataType] = {}

    def database(self, row: _Row) -> tuple[str, Database]:
        """Return a database and its key from plain data."""
        name, collation, rows, views, unknown = _fill_defaults(row, ((), (), ()), 5)
        tables = (self.table(each, name) for each in rows)
        by_name = SharedMap[TableDefinition].from_items((self._key(table.name.table), table) for table in tables)
        marks = SharedMap[str].from_items((table, statement) for table, statement in unknown)
        return self._key(name), Database(name, collation, by_name, frozenset(views), marks)

    def table(self, row: _Row, database: str) -> TableDefinition:
        """Return the definition of a table from plain data."""
        name, collation, fields, indexes, flags, engine, row_format, periods = _fill_defaults(
            row, (0, "innodb", "", ()), 8
        )
        return TableDefinition(
            TableName(database, name),
            tuple(self._field(each, collation) for each in fields),
            tuple(map(_index, indexes)),
            collation,
            engine,
            row_format,
            tuple((period, start, end) for period, start, end in periods),
            bool(flags & _TableFlag.VERSIONED),
            bool(flags & _TableFlag.MARIADB),
        )

    def _field(self, row: _Row, table_collation: str) -> ColumnDefinition:
        name, kind, flags, length, collation, scale, labels, width = _fill_defaults(row, (0, 0, "", 0, (), 0), 8)
        key = kind, length, scale, width, flags & _TYPE_FLAGS, *labels
        type_ = self._types.get(key)
        if type_ is None:
            type_ = self._types[key] = DataType(
                kind,
                length,
                scale,
                bool(flags & _FieldFlag.UNSIGNED),
                bool(flags & _FieldFlag.COMPRESSED),
                bool(flags & _FieldFlag.SIZED),
                tuple(cast("str", label).encode("latin-1") for label in labels),
                width,
                bool(flags & _FieldFlag.ZEROFILL),
            )
        return ColumnDefinition(
            name,
            type_,
            table_collation if collation == _SAME else collation,
            not flags & _FieldFlag.NOT_NULL,
            bool(flags & _FieldFlag.AUTO),
            bool(flags & _FieldFlag.GENERATED),
            not flags & _FieldFlag.INVISIBLE,
            bool(flags & _FieldFlag.ROW_END),
            bool(flags & _FieldFlag.HIDDEN),
        )

    def _key(self, name: str) -> str:
        return fold(name) if self._server.lower_case_table_names else name


def _index(row: _Row) -> IndexDefinition:
    name, parts, flags, kind = _fill_defaults(row, (0, KeyKind.PLAIN.value), 4)
    part_list = [parts] if isinstance(parts, str) else cast("list[str | list[Any]]", parts)
    made = tuple(IndexPart(each) if isinstance(each, str) else IndexPart(*each) for each in part_list)
    return IndexDefinition(name, KeyKind(kind), made, bool(flags & _IndexFlag.IMPLIED), bool(flags & _IndexFlag.HASH))


def _fill_defaults(row: _Row, defaults: tuple[Any, ...], size: int) -> tuple[Any, ...]:
    """Return a row with the defaults that are not written."""
    missing = size - len(row)
    return (*row, *defaults[len(defaults) - missing :]) if missing else tuple(row)
