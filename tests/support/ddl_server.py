"""A server whose DDL is followed by two catalogues, one by the text we send and one by the text it logs.

After every statement both are compared with information_schema: if they differ, the server is right.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

from pymysql import MySQLError
from pymysql.cursors import Cursor

from penstock.binlog.events.bodies import QueryBody, parse_body
from penstock.binlog.events.layout import CHECKSUM, HEADER, SIZE_AT, TYPE_AT, EventType
from penstock.binlog.events.table_map import parse_table_map
from penstock.model import Column, TableName, TableSchema, WireType
from penstock.model.table import is_nameless
from penstock.schema.catalogue import Catalogue
from penstock.schema.declared import declared_types_in_ddl
from penstock.schema.dialect import ServerProfile, SqlMode, SqlSession
from penstock.schema.live import _column
from penstock.schema.live_catalogue import read_catalogue
from penstock.schema.shape import ColumnDefinition, TableDefinition
from penstock.testing import DatabaseServer

_ONLY_LOGGED = re.compile(r"CALL |CREATE .*\bTABLE .*\bSELECT ")  # what they do is not in their text
_GEOMETRIES = ("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon")


@dataclass(frozen=True)
class Shape:
    """What is compared of a table."""

    schema: TableSchema
    collations: tuple[str, ...]  # of the table, then of each column
    indexes: "Indexes"
    types: tuple[str, ...]  # as they were declared; labels apart


Indexes = dict[str, tuple[tuple[str, int], ...]]


class FollowedServer:
    """`start` names the databases that this test makes: others' are left alone."""

    def __init__(self, server: DatabaseServer, start: str) -> None:
        self.connection = server.connect(charset="utf8mb4")
        self.cursor: Cursor = self.connection.cursor()
        self.start, self.server = start, server
        self.cursor.execute("SET GLOBAL innodb_file_per_table = OFF")  # a file for each table is most of what DDL takes
        version, case = self.row("SELECT VERSION(), @@lower_case_table_names")
        self.sent = Catalogue(ServerProfile.from_version_text(version, case))
        self.logged = self.sent
        self.count = 0

    def close(self) -> None:
        self.cursor.execute("SET sql_mode = '', foreign_key_checks = 0, GLOBAL innodb_file_per_table = ON")
        for name in self._databases():
            self.cursor.execute(f"DROP DATABASE `{name}`")
        self.connection.close()

    def row(self, query: str) -> tuple[Any, ...]:
        self.cursor.execute(query)
        return self.cursor.fetchone() or ()

    def run(self, statement: str) -> None:
        """Run it, follow it, compare."""
        database, session = self._session()
        before = self.log_end()
        try:
            self.cursor.execute(statement)
        except MySQLError:
            # A CREATE OR REPLACE that fails has dropped the table before, and says so in the log.
            self._follow(before, session)
            self.sent = self.logged
            raise
        self.count += 1
        if not _ONLY_LOGGED.match(statement):
            self.sent = self.sent.apply(statement, database, session).catalogue
        self._follow(before, session)
        if _ONLY_LOGGED.match(statement):
            self.sent = self.logged
        if not statement.startswith("SET "):
            self.compare()

    def _follow(self, start: tuple[str, int], session: SqlSession) -> None:
        for logged in self.log_since(start):
            logged_session = replace(
                session, sql_mode=SqlMode(logged.sql_mode or 0), thread=logged.thread, error=logged.error
            )
            self.logged = self.logged.apply(logged.text, logged.database, logged_session).catalogue

    def compare(self) -> None:
        server = self.shapes()
        for text_kind, catalogue in (("sent", self.sent), ("logged", self.logged)):
            ours = {name: shape_of(catalogue, name) for name in catalogue.table_names()}
            _same(sorted(ours), sorted(server), text_kind)
            for name, shape in server.items():
                assert_same(ours[name], shape, f"{name} by the text {text_kind}")
        databases = self._databases()
        assert {name: _full(self.sent.database(name).collation) for name in databases} == databases  # type: ignore[union-attr]

    def compare_live(self) -> None:
        """What is read from the server is what its DDL has given, all that later statements build on too."""
        live = read_catalogue(self.cursor, sorted(self._databases()))
        left_out = set(self.sent.table_names()) - set(live.table_names())
        assert all(any(map(_are_broken, self.sent.schema_of(name).columns)) for name in left_out), left_out
        for name in live.table_names():
            mine, theirs = self.sent.find(name), live.find(name)
            assert mine is not None
            assert theirs is not None
            mine = _as_shown(mine, theirs)
            for our_field, server_field in zip(mine.fields, theirs.fields, strict=False):
                _same(our_field, server_field, f"{name} live")
            _same(mine.indexes, theirs.indexes, f"{name} live")
            _same(mine, theirs, f"{name} live")
        for name in self._databases():
            ours, shown = self.sent.database(name), live.database(name)
            assert ours is not None
            assert shown is not None
            _same((ours.collation, ours.views), (shown.collation, shown.views), f"{name} live")

    def compare_rows(self) -> int:
        """Put a row into every table that takes one: its table map has the columns of our model, hidden ones too."""
        self.cursor.execute("SET sql_mode = '', foreign_key_checks = 0")
        before = self.log_end()
        for name in self.sent.table_names():
            with suppress(MySQLError):
                self.cursor.execute(f"INSERT INTO {quoted(name)} () VALUES ()")
        maps = {logged.name: logged for logged in self._table_maps(before)}
        for name, logged in maps.items():
            ours = _as_logged(self.sent.schema_of(name), logged)
            for mine, theirs in zip(ours.columns, logged.columns, strict=False):
                _same(mine, theirs, f"{name} by the rows")
            _same(ours, logged, f"{name} by the rows")
        return len(maps)

    def _table_maps(self, start: tuple[str, int]) -> Iterator[TableSchema]:
        version = self.row("SELECT VERSION()")[0]
        for kind, body in self._events(start):
            if kind == EventType.TABLE_MAP:
                yield parse_table_map(body, version)

    def shapes(self) -> dict[TableName, Shape]:
        """Of all tables, with as few queries as for one."""
        self.cursor.execute(
            "SELECT table_schema, table_name, table_collation FROM information_schema.tables"
            f" WHERE table_schema LIKE '{self.start}%' AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED', 'SEQUENCE')"
        )
        collations = {TableName(schema, table): collation for schema, table, collation in self.cursor.fetchall()}
        columns, indexes, keys = self._columns(), self._indexes(), self._keys()
        vector = WireType.VARCHAR if self.sent.server.is_mariadb else WireType.VECTOR
        return {
            name: _shape(name, collation, columns[name], indexes.get(name, {}), keys.get(name, ()), vector)
            for name, collation in collations.items()
        }

    def _columns(self) -> dict[TableName, list[tuple[Any, ...]]]:
        self.cursor.execute(
            "SELECT table_schema, table_name, column_name, data_type, column_type, is_nullable, numeric_precision,"
            " numeric_scale, datetime_precision, character_set_name, character_octet_length, collation_name, extra"
            f" FROM information_schema.columns WHERE table_schema LIKE '{self.start}%'"
            " ORDER BY table_schema, table_name, ordinal_position"
        )
        columns: dict[TableName, list[tuple[Any, ...]]] = {}
        for schema, table, *row in self.cursor.fetchall():
            columns.setdefault(TableName(schema, table), []).append(tuple(row))
        return columns

    def _keys(self) -> dict[TableName, tuple[str, ...]]:
        self.cursor.execute(
            "SELECT table_schema, table_name, column_name FROM information_schema.key_column_usage"
            f" WHERE table_schema LIKE '{self.start}%' AND constraint_name = 'PRIMARY'"
            " ORDER BY table_schema, table_name, ordinal_position"
        )
        keys: dict[TableName, tuple[str, ...]] = {}
        for schema, table, column in self.cursor.fetchall():
            name = TableName(schema, table)
            keys[name] = (*keys.get(name, ()), column)
        return keys

    def _indexes(self) -> dict[TableName, Indexes]:
        self.cursor.execute(
            "SELECT table_schema, table_name, index_name, column_name, IF(index_type = 'SPATIAL', 0, sub_part)"
            f" FROM information_schema.statistics WHERE table_schema LIKE '{self.start}%'"
            " ORDER BY table_schema, table_name, index_name, seq_in_index"
        )
        indexes: dict[TableName, Indexes] = {}
        for schema, table, index, column, prefix in self.cursor.fetchall():
            columns_by_index = indexes.setdefault(TableName(schema, table), {})
            columns_by_index[index] = (*columns_by_index.get(index, ()), (column or "", int(prefix or 0)))
        return indexes

    def _databases(self) -> dict[str, str]:
        self.cursor.execute(
            "SELECT schema_name, default_collation_name FROM information_schema.schemata"
            f" WHERE schema_name LIKE '{self.start}%'"
        )
        return {name: _full(collation) for name, collation in self.cursor.fetchall()}

    def _session(self) -> tuple[str, SqlSession]:
        """With the database in use."""
        database, mode_names, collation, explicit = self.row(
            "SELECT DATABASE(), @@sql_mode, @@collation_server, @@explicit_defaults_for_timestamp"
        )
        mode = SqlMode(0)
        for name in mode_names.split(","):
            mode |= SqlMode.__members__.get(name, SqlMode(0))
        return database or "", SqlSession(mode, bool(explicit), collation)

    def log_end(self) -> tuple[str, int]:
        statement = "SHOW BINARY LOG STATUS" if self.server.version.startswith("9") else "SHOW MASTER STATUS"
        row = self.row(statement)
        return row[0], row[1]

    def log_since(self, start: tuple[str, int]) -> Iterator[QueryBody]:
        """The statements from there on, as the log has them."""
        for kind, body in self._events(start):
            if kind == EventType.QUERY:
                yield cast("QueryBody", parse_body(kind, body))

    def _events(self, start: tuple[str, int]) -> Iterator[tuple[int, bytes]]:
        name, at = start
        with (self.server.data / name).open("rb") as file:
            file.seek(at)
            log = file.read()
        at = 0
        while at < len(log):
            kind, size = log[at + TYPE_AT], int.from_bytes(log[at + SIZE_AT : at + SIZE_AT + 4], "little")
            yield kind, log[at + HEADER : at + size - CHECKSUM]
            at += size


def _shape(
    name: TableName,
    collation: str,
    rows: list[tuple[Any, ...]],
    indexes: Indexes,
    key: tuple[str, ...],
    vector: WireType,
) -> Shape:
    columns = tuple(_with_more(_column(*row[:9], vector=vector), *row[:3], *row[9:]) for row in rows)
    prefixes = tuple(prefix for _, prefix in indexes.get("PRIMARY", ()))
    prefixes += (0,) * (len(key) - len(prefixes))  # a hidden column
    schema = TableSchema(name, columns, key, key_prefixes=prefixes if any(prefixes) else ())
    collations = [
        _full(row[9] or ("binary" if column.labels else "")) for column, row in zip(columns, rows, strict=True)
    ]
    types = tuple(_without_labels(_declared(row[2])) for row in rows)
    return Shape(schema, (_full(collation), *collations), indexes, types)


def _declared(column_type: Any) -> str:
    """Without what belongs to the column, not to its type."""
    text = column_type.decode() if isinstance(column_type, bytes) else str(column_type)
    return text.partition(" /*")[0]


def _without_labels(text: str) -> str:
    """A catalogue does not show all labels as they are."""
    return text.partition("(")[0] if text.startswith(("enum(", "set(")) else text


def shape_of(catalogue: Catalogue, name: TableName) -> Shape:
    """Without what only the log's rows have."""
    table = catalogue.find(name)
    assert table is not None
    hidden = {field.name for field in table.fields if field.is_hidden}
    columns = tuple(column for column in table.schema.columns if column.name not in hidden)
    return Shape(
        replace(table.schema, columns=columns),
        (table.collation, *(field.collation for field in table.fields if not field.is_hidden)),
        {
            index.name: tuple((part.column, part.prefix) for part in index.parts if part.column not in hidden)
            for index in table.indexes
        },
        tuple(
            _without_labels(text)
            for text, field in zip(declared_types_in_ddl(table, catalogue.server), table.fields, strict=True)
            if not field.is_hidden
        ),
    )


def assert_same(ours: Shape, server: Shape, context: str) -> None:
    """With a message that shows the first difference only: tables are long."""
    _same([each.name for each in ours.schema.columns], [each.name for each in server.schema.columns], context)
    for mine, theirs in zip(ours.schema.columns, server.schema.columns, strict=True):
        _same(mine, replace(theirs, labels=mine.labels) if _are_broken(mine) else theirs, context)
    _same((ours.schema.key, ours.schema.key_prefixes), (server.schema.key, server.schema.key_prefixes), context)
    _same(ours.collations, server.collations, context)
    _same(ours.indexes, server.indexes, context)
    _same(ours.types, server.types, context)


def _are_broken(column: Column) -> bool:
    """A catalogue shows such labels as empty or as question marks, and that of 5.7 ends them at a zero."""
    is_ascii = column.charset == "ascii"
    return any("\ufffd" in label or "\0" in label or (is_ascii and not label.isascii()) for label in column.labels)


def _as_shown(ours: TableDefinition, live: TableDefinition) -> TableDefinition:
    """Our table without what the server does not show: the order of indexes and of their hashes, which are implied, and
    broken labels."""
    implied = {index.name: index.is_implied for index in live.indexes}
    order = [index.name for index in live.indexes]
    indexes = [replace(index, is_implied=implied.get(index.name, False)) for index in ours.indexes]
    indexes.sort(key=lambda index: order.index(index.name) if index.name in order else -1)
    shown = {field.name: field for field in live.fields}
    columns = {column.name: column for column in ours.schema.columns}
    fields = tuple(
        replace(field, type=replace(field.type, labels=shown[field.name].type.labels))
        if field.name in shown and _is_hidden(columns[field.name], shown[field.name])
        else field
        for field in ours.fields
    )
    if sorted(map(_nulls, fields)) == sorted(map(_nulls, live.fields)):
        fields = tuple(shown.get(field.name, field) if field.is_hidden else field for field in fields)
    return replace(ours, fields=fields, indexes=tuple(indexes))


def _nulls(field: ColumnDefinition) -> tuple[str, bool]:
    """Which hash is which follows from how the table came to be."""
    return "hash" if field.name.startswith("DB_ROW_HASH") else field.name, field.is_nullable


def _is_hidden(ours: Column, live: ColumnDefinition) -> bool:
    """Labels that are broken, or bytes that are no text."""
    return _are_broken(ours) or any(isinstance(label, bytes) and b"?" in label for label in live.type.labels)


def _same(ours: object, server: object, context: str) -> None:
    assert ours == server, f"{context}\n  ours   {ours}\n  server {server}"


def _as_logged(ours: TableSchema, logged: TableSchema) -> TableSchema:
    """Our table without what this log does not say."""
    if len(ours.columns) != len(logged.columns):
        return ours
    columns = tuple(_column_as_logged(*pair, logged) for pair in zip(ours.columns, logged.columns, strict=True))
    ours = replace(ours, columns=columns, has_signs=logged.has_signs)
    # MySQL takes the first unique key that is never null for the key of a table without one.
    has_own_key = ours.key and not is_nameless(logged)
    return ours if has_own_key else replace(ours, key=logged.key, key_prefixes=logged.key_prefixes)


def _column_as_logged(ours: Column, logged: Column, table: TableSchema) -> Column:
    if ours.dimension and ours.type is WireType.VARCHAR:  # MariaDB's vectors, which the log does not tell from bytes
        ours = replace(ours, dimension=0)
    # Logs do not tell an INET6 from bytes, nor MariaDB's which columns are invisible; some have a sign bit for YEAR.
    ours = replace(ours, declared="", is_visible=logged.is_visible)
    if ours.type is WireType.YEAR or not table.has_signs:
        ours = replace(ours, unsigned=logged.unsigned)
    if is_nameless(table):
        names = {"name": logged.name, "charset": "", "labels": (), "geometry": 0, "dimension": 0}
        return replace(ours, **names)
    if logged.charset:
        return ours if logged.labels else replace(ours, labels=())
    return replace(ours, charset="", labels=logged.labels)  # early 8.0 has labels without their charset


def quoted(name: TableName) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in (name.schema, name.table))


def _with_more(column: Column, name: str, kind: str, declared: Any, collation: str | None, extra: str) -> Column:
    """What live_schema leaves out."""
    assert column.name == name
    kind = kind.lower()
    text = declared.decode() if isinstance(declared, bytes) else str(declared)
    charset = "utf8mb3" if column.charset == "utf8" else column.charset
    geometry = _GEOMETRIES.index(kind) if kind in _GEOMETRIES else 7 if kind.startswith("geom") else 0
    return replace(
        column,
        # MySQL 8 and 9 show no charset of labels that are bytes; their logs do.
        charset=charset or ("binary" if column.labels else ""),
        geometry=geometry,
        dimension=int(text[7:-1]) if kind == "vector" else 0,
        is_visible="INVISIBLE" not in extra.upper(),
    )


def _full(collation: str) -> str:
    return "utf8mb3_" + collation[5:] if collation.startswith("utf8_") else collation
