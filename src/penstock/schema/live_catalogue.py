"""A whole server's tables from its own catalogue, equal to what its DDL from the first day on would give.

A few queries read all of them, which is not a single moment: the caller makes sure that no DDL ran meanwhile. One thing
no catalogue shows: whether an index was made for a foreign key. One of the name and the columns that such an index
would have counts as made for it. A table of which the server shows no columns, or half a type (5.7 ends one at a label
that is not text), is left out, with a warning: DDL on it is then an error.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from penstock.errors import SchemaError
from penstock.model import TableName
from penstock.schema.catalogue import Catalogue
from penstock.schema.collation import charset_of_collation
from penstock.schema.creating import HIDDEN
from penstock.schema.database import Database
from penstock.schema.ddl import StatementKind, parse_statement
from penstock.schema.ddl.column import read_definition
from penstock.schema.ddl.create import CreateTable
from penstock.schema.ddl.data_type import TEXTS, DataType
from penstock.schema.ddl.key import KeyKind
from penstock.schema.ddl.reader import TokenReader
from penstock.schema.dialect import ServerProfile, SqlDialect
from penstock.schema.indexing import with_row_end
from penstock.schema.key_length import hash_fields, key_limit
from penstock.schema.label import normalize_label
from penstock.schema.shape import ColumnDefinition, IndexDefinition, IndexPart, TableDefinition, fold
from penstock.schema.shared_map import SharedMap

log = logging.getLogger(__name__)

_NO_TABLES = ("information_schema", "performance_schema")
_KINDS = {"FULLTEXT": KeyKind.FULLTEXT, "SPATIAL": KeyKind.SPATIAL, "VECTOR": KeyKind.VECTOR}
_ROW_FORMAT = "row_format="
_TABLES = "SELECT table_schema, table_name, table_type, engine, table_collation, create_options"
_COLUMNS = (
    "SELECT table_schema, table_name, column_name, column_type, collation_name, is_nullable, extra,"
    " generation_expression"
)
_INDEXES = "SELECT table_schema, table_name, index_name, column_name, sub_part, index_type, non_unique"
_FOREIGN = "SELECT table_schema, table_name, constraint_name, column_name"
_CHECKS = "SELECT constraint_schema, table_name, check_clause"


def read_server(cursor: Any) -> ServerProfile:
    """Return the version and the settings of a server that change how it reads DDL."""
    cursor.execute(
        "SHOW GLOBAL VARIABLES WHERE variable_name IN ('version', 'lower_case_table_names', 'old_mode',"
        " 'character_set_collations')"
    )
    variables: dict[str, str] = dict(cursor.fetchall())
    server = ServerProfile.from_version_text(variables["version"], int(variables["lower_case_table_names"]))
    if not server.is_mariadb or server.version < 100600:
        return server
    pairs = [pair.split("=") for pair in variables.get("character_set_collations", "").split(",") if pair]
    return replace(
        server,
        utf8_is_utf8mb3="UTF8_IS_UTF8MB3" in variables["old_mode"],
        default_collations=tuple((charset, collation) for charset, collation in pairs),
    )


def read_catalogue(cursor: Any, databases: Sequence[str] = (), *, destination: str = "-") -> Catalogue:
    """Return the catalogue of all databases that the user sees, or of these. The cursor returns rows as tuples.
    `destination` is the instance that a table is reported for that cannot be read."""
    server = read_server(cursor)
    reading = _CatalogueReader(cursor, SqlDialect(server), databases, destination)
    all_databases = reading.read_databases()
    return Catalogue(server, SharedMap[Database].from_items((_key(each.name, server), each) for each in all_databases))


@dataclass(slots=True)
class _Facts:
    """The rows that the queries of information_schema returned for one table."""

    columns: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    indexes: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    foreign: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    periods: tuple[tuple[str, str, str], ...] = ()


class _CatalogueReader:
    """Reads the tables of a server from its information_schema, query by query."""

    def __init__(self, cursor: Any, dialect: SqlDialect, databases: Sequence[str], destination: str) -> None:
        self._cursor, self._dialect, self._destination = cursor, dialect, destination
        self._names = tuple(databases) or _NO_TABLES
        self._is_in = "IN" if databases else "NOT IN"
        self._types: dict[str, DataType] = {}
        self._facts: dict[tuple[str, str], _Facts] = {}

    def read_databases(self) -> Iterator[Database]:
        """Return all databases with their tables."""
        schemata = self._rows("SELECT schema_name, default_collation_name", "schemata", "schema_name")
        rows = self._rows(_TABLES, "tables", "table_schema")
        self._facts = {(schema, table): _Facts() for schema, table, *_ in rows}
        for schema, table, *row in self._rows(_COLUMNS, "columns", "table_schema", "ordinal_position"):
            self._of(schema, table).columns.append(tuple(row))
        for schema, table, *row in self._rows(_INDEXES, "statistics", "table_schema", "index_name, seq_in_index"):
            self._of(schema, table).indexes.append(tuple(row))
        self._read_foreign()
        if self._dialect.server.is_mariadb:
            self._read_periods()
        by_schema: dict[str, list[tuple[Any, ...]]] = {}
        for schema, *row in rows:
            by_schema.setdefault(schema, []).append(tuple(row))
        for schema, collation in schemata:
            yield self._database(schema, collation, by_schema.get(schema, []))

    def _rows(self, select: str, table: str, schema: str, order: str = "", also: str = "") -> list[tuple[Any, ...]]:
        marks = ", ".join(["%s"] * len(self._names))
        ordered = f" ORDER BY table_schema, table_name, {order}" if order else ""
        query = f"{select} FROM information_schema.{table} WHERE {schema} {self._is_in} ({marks}){also}{ordered}"
        self._cursor.execute(query, self._names)
        return list(self._cursor.fetchall())

    def _of(self, schema: str, table: str) -> _Facts:
        """Return the facts of a table; a table that came after the first query is left out."""
        return self._facts.get((schema, table)) or _Facts()

    def _read_foreign(self) -> None:
        also, order = " AND referenced_table_name IS NOT NULL", "constraint_name, ordinal_position"
        rows = self._rows(_FOREIGN, "key_column_usage", "table_schema", order, also)
        for schema, table, name, column in rows:
            self._of(schema, table).foreign.setdefault(name, []).append(column)

    def _read_periods(self) -> None:
        """Read the periods: a period is a check of its two columns, which then are read from the table's own text."""
        rows = self._rows(_CHECKS, "check_constraints", "constraint_schema")
        candidates = {(schema, table) for schema, table, clause in rows if _text(clause).count("` < `") == 1}
        for schema, table in sorted(candidates & self._facts.keys()):
            quoted = ".".join("`" + part.replace("`", "``") + "`" for part in (schema, table))
            self._cursor.execute(f"SHOW CREATE TABLE {quoted}")
            text = _text(self._cursor.fetchone()[1])
            statement = parse_statement(text, StatementKind.CREATE_TABLE, self._dialect, schema)
            if isinstance(statement, CreateTable):
                periods = tuple((each.name, each.start, each.end) for each in statement.periods)
                self._of(schema, table).periods = tuple(each for each in periods if each[0].upper() != "SYSTEM_TIME")

    def _database(self, name: str, collation: str, rows: Iterable[tuple[Any, ...]]) -> Database:
        tables: list[tuple[str, TableDefinition]] = []
        views: set[str] = set()
        for table, kind, engine, table_collation, options in rows:
            key = _key(table, self._dialect.server)
            if "VIEW" in kind:
                views.add(key)
            else:
                made = TableDefinition(
                    TableName(name, table), (), (), _full(table_collation or collation), (engine or "").lower(),
                    _row_format(options or ""), is_versioned=kind == "SYSTEM VERSIONED",
                    is_mariadb=self._dialect.server.is_mariadb,
                )  # fmt: skip
                try:
                    tables.append((key, self._fill_table(made, self._of(name, table))))
                except SchemaError as error:
                    log.warning(
                        "table schema not read destination=%s table=%s reason=%s: the schema history begins without it",
                        *(self._destination, made.name, error),
                    )
        return Database(name, _full(collation), SharedMap[TableDefinition].from_items(tables), frozenset(views))

    def _fill_table(self, table: TableDefinition, facts: _Facts) -> TableDefinition:
        if not facts.columns:
            raise SchemaError("its columns are not to be seen: it is damaged, or gone by now")
        fields = [self._field(*row) for row in facts.columns]
        starts = [name for name, *_, expression in facts.columns if _text(expression) == "ROW START"]
        ends = [each.name for each in fields if each.is_row_end]
        periods = facts.periods
        if starts and ends:
            periods = (*periods, ("SYSTEM_TIME", starts[0], ends[0]))
        elif table.is_versioned:
            fields += HIDDEN
            ends = [HIDDEN[-1].name]
        has_hashes = table.is_mariadb and key_limit(table.engine, table.row_format) > 0
        row_end = ends[0] if ends and table.is_versioned else ""
        indexes = [with_row_end(index, row_end) for index in _indexes(facts, has_hashes)]
        return replace(
            table,
            fields=(*fields, *hash_fields(indexes, fields)),
            indexes=tuple(indexes),
            periods=periods,
        )

    def _field(
        self, name: str, declared: Any, collation: str | None, nullable: str, extra: str, expression: Any
    ) -> ColumnDefinition:
        type_, made_of = self._type(_text(declared)), _text(expression)
        # MySQL 8 and 9 show no charset of labels that are bytes.
        collation = _full(collation or ("binary" if type_.labels else "")) if type_.kind in TEXTS else ""
        if type_.labels:
            charset = charset_of_collation(collation)
            type_ = replace(type_, labels=tuple(normalize_label(label, charset) for label in type_.labels))
        return ColumnDefinition(
            name,
            type_,
            collation,
            is_nullable=nullable == "YES",
            is_auto="auto_increment" in extra.lower(),
            is_generated=bool(made_of) and not made_of.startswith("ROW "),
            is_visible="INVISIBLE" not in extra.upper(),
            is_row_end=made_of == "ROW END",
        )

    def _type(self, declared: str) -> DataType:
        parsed = self._types.get(declared)
        if parsed is None:
            reader = TokenReader(declared, self._dialect)
            parsed = self._types[declared] = read_definition(reader, "").type
        return parsed


def _indexes(facts: _Facts, has_hashes: bool) -> Iterator[IndexDefinition]:
    for name, rows in groupby(facts.indexes, key=lambda row: row[0]):
        parts = list(rows)
        _, _, _, method, non_unique = parts[0]
        kind = KeyKind.PRIMARY if name == "PRIMARY" else _KINDS.get(method)
        if kind is None:
            kind = KeyKind.PLAIN if non_unique else KeyKind.UNIQUE
        has_prefix = kind is not KeyKind.SPATIAL
        made = tuple(
            IndexPart(column or "", int(prefix or 0) if has_prefix else 0) for _, column, prefix, _, _ in parts
        )
        is_implied = kind is KeyKind.PLAIN and _is_implied(name, [part.column for part in made], facts)
        is_hash = has_hashes and kind is KeyKind.UNIQUE and method == "HASH"
        yield IndexDefinition(name, kind, made, is_implied, is_hash)


def _is_implied(name: str, columns: list[str], facts: _Facts) -> bool:
    wanted = fold(name)
    return any(
        columns == foreign and (wanted == fold(symbol) or wanted == fold(columns[0]))
        for symbol, foreign in facts.foreign.items()
    )


def _row_format(options: str) -> str:
    return next((word[len(_ROW_FORMAT) :].lower() for word in options.split() if word.startswith(_ROW_FORMAT)), "")


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value or "")


def _full(collation: str) -> str:
    return "utf8mb3_" + collation[5:] if collation.startswith("utf8_") else collation


def _key(name: str, server: ServerProfile) -> str:
    return fold(name) if server.lower_case_table_names else name
