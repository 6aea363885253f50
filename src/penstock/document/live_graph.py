"""Loads a document graph from the live tables, and checks that it can be followed."""

from dataclasses import replace
from typing import Any

from penstock.document.document_tables import DocumentTables
from penstock.document.graph import DocumentGraph
from penstock.document.graph_builder import resolve_spec
from penstock.document.references import with_references
from penstock.document.spec import DocumentSpec, JoinSpec, RootSpec
from penstock.document.sql_text import quote_table
from penstock.document.sync import LoadedGraph
from penstock.errors import SchemaError
from penstock.model import Column, TableName, TableSchema
from penstock.schema.foreign_keys import CascadingKey, read_cascading_keys
from penstock.schema.live import read_live_schema
from penstock.search.index import FieldKind
from penstock.snapshot.key_column import quote_name

# Type codes of result sets.
_INTEGERS = {1, 2, 3, 8, 9, 13}
_NUMBERS = {0, 4, 5, 246}
_DATES = {7, 10, 12}

_LOWER_CASE = 1  # of lower_case_table_names
_CLIENT_ERRORS = 2000  # from here on, errors of the connection

_FIRST_COLUMNS = (
    "SELECT index_name, column_name FROM information_schema.statistics"
    " WHERE table_schema = %s AND table_name = %s ORDER BY index_name, seq_in_index"
)

_SYSTEM_VERSIONING = (
    "SELECT COUNT(*) FROM information_schema.tables"
    " WHERE table_schema = %s AND table_name = %s AND table_type = 'SYSTEM VERSIONED'"
)

_GENERATED = (
    "SELECT column_name FROM information_schema.columns"
    " WHERE table_schema = %s AND table_name = %s AND generation_expression <> ''"
    " AND generation_expression NOT LIKE 'ROW %%'"  # of system versioning, which the log has
)
_LEAVES_OUT_GENERATED = 11  # MariaDB from this version on

_UNIQUE_COLUMNS = (
    "SELECT index_name, column_name, sub_part FROM information_schema.statistics"
    " WHERE table_schema = %s AND table_name = %s AND non_unique = 0 ORDER BY index_name, seq_in_index"
)


def load_graph(cursor: Any, spec: DocumentSpec, known: DocumentTables | None = None) -> LoadedGraph:
    """Resolve a spec against the tables as they are now. A table that is `known` from before may be missing; else that
    is an error."""
    case = _read_letter_case(cursor)
    if case == _LOWER_CASE:
        spec = spec.with_lower_case_tables()  # as the log has them
    schemas: dict[TableName, TableSchema] = {}
    missing: set[TableName] = set()
    for table in spec.tables:
        try:
            schemas[table] = read_live_schema(cursor, table)
        except SchemaError:
            if known is None or table not in known.tables:
                raise
            schemas[table] = known.tables[table]
            missing.add(table)
    kinds = _find_expression_kinds(cursor, spec, frozenset(missing))
    if known is not None:
        kinds = {**known.kinds, **kinds}
    unique_keys = {name: _read_unique_keys(cursor, name) for name in schemas if name not in missing}
    if known is not None:
        unique_keys = {**known.unique_keys, **unique_keys}
    graph = replace(resolve_spec(spec, schemas, kinds, unique_keys), unique_keys=unique_keys)
    generated = {name: _read_generated(cursor, name) for name in schemas if name not in missing}
    if known is not None:
        generated = {**known.generated, **generated}
    has_history = _has_system_versioning(cursor, graph.root.table.name)
    graph = replace(graph, keeps_history=has_history, generated=generated, folds_names=case > 0)
    _check_generated(cursor, graph)
    keys = _read_all_cascading_keys(cursor, schemas, frozenset(missing))
    graph = with_references(graph, keys, schemas)
    return LoadedGraph(graph, frozenset(missing), DocumentTables.of(graph, kinds))


def _read_letter_case(cursor: Any) -> int:
    """Return how a server takes names of tables: 0 as they are written, 1 in lower case, 2 in any letters."""
    cursor.execute("SELECT @@GLOBAL.lower_case_table_names")
    ((case,),) = cursor.fetchall()
    return int(case)


def _has_system_versioning(cursor: Any, table: TableName) -> bool:
    """Return whether MariaDB keeps the history of a table's rows."""
    cursor.execute(_SYSTEM_VERSIONING, (table.schema, table.table))
    ((count,),) = cursor.fetchall()
    return bool(count)


def _read_generated(cursor: Any, table: TableName) -> frozenset[str]:
    """Return the columns of a table that the server computes."""
    cursor.execute(_GENERATED, (table.schema, table.table))
    return frozenset(str(name) for (name,) in cursor.fetchall())


def _check_generated(cursor: Any, graph: DocumentGraph) -> None:
    """Raise SchemaError where documents are found by a column that the server does not write to its log."""
    named: list[tuple[TableSchema, Column]] = [(graph.root.table, column) for column in graph.root.key]
    for node in graph.nodes:
        named += [(node.table, column) for column in node.lower_columns]
        if node.parent is not None and node.link is None:
            named += [(node.parent.table, pair.upper) for pair in node.on]
    wrong = [(table.name, column.name) for table, column in named if column.name in graph.generated.get(table.name, ())]
    if not wrong:
        return
    cursor.execute("SELECT VERSION()")
    ((version,),) = cursor.fetchall()
    if "mariadb" in str(version).lower() and int(str(version).split(".")[0]) >= _LEAVES_OUT_GENERATED:
        table, name = wrong[0]
        raise SchemaError(
            f"document '{graph.spec.index}': documents are found by {table}.{name}, which is generated, and the log of"
            f" MariaDB {version} has no generated columns in updates and deletes: use the columns that it is made of"
        )


def _read_unique_keys(cursor: Any, table: TableName) -> list[tuple[str, ...]]:
    """Return the columns of each unique key of a table that is over whole values."""
    cursor.execute(_UNIQUE_COLUMNS, (table.schema, table.table))
    keys: dict[str, list[str | None]] = {}
    for index, column, prefix in cursor.fetchall():
        keys.setdefault(str(index), []).append(None if prefix or column is None else str(column))
    return [tuple(key) for key in keys.values() if None not in key]  # type: ignore[misc]


def _read_all_cascading_keys(
    cursor: Any, schemas: dict[TableName, TableSchema], missing: frozenset[TableName]
) -> dict[TableName, list[CascadingKey]]:
    """Return the cascading foreign keys of all tables, and of the parents that they name, which are added to the
    tables."""
    keys: dict[TableName, list[CascadingKey]] = {}
    pending = [name for name in schemas if name not in missing]
    while pending:
        name = pending.pop()
        keys[name] = read_cascading_keys(cursor, name)
        for key in keys[name]:
            if key.parent not in schemas:
                schemas[key.parent] = read_live_schema(cursor, key.parent)
                pending.append(key.parent)
    return keys


def _find_expression_kinds(
    cursor: Any, spec: DocumentSpec, missing: frozenset[TableName]
) -> dict[tuple[TableName, str], FieldKind]:
    """Return how the SQL expressions of a spec are searched, by the types that the server says they have. An expression
    that the server does not take is a SchemaError."""
    kinds: dict[tuple[TableName, str], FieldKind] = {}

    def probe(name: TableName, sql: str, where: str) -> int:
        try:
            cursor.execute(f"SELECT {sql} FROM {quote_table(name)} LIMIT 0")
        except Exception as error:  # the driver's own classes are known to the source only
            if not error.args or not isinstance(error.args[0], int) or error.args[0] >= _CLIENT_ERRORS:
                raise
            raise SchemaError(
                f"document '{spec.index}': {where}: the server refuses the SQL {sql!r}: {error.args[-1]}"
            ) from error
        return cursor.description[0][1]

    def visit(table: RootSpec | JoinSpec, path: str) -> None:
        name = TableName.parse(table.table)
        condition = table.where if isinstance(table, RootSpec) else table.filter
        if isinstance(condition, str) and name not in missing:
            probe(name, f"({condition})", f"{path}.{'where' if isinstance(table, RootSpec) else 'filter'}")
        for field, part in table.fields.items():
            if part.sql is not None and name not in missing:
                kinds[name, part.sql] = _kind_of_code(probe(name, part.sql, f"{path}.fields.{field}"))
        for join_name, join in table.joins.items():
            visit(join, f"{path}.joins.{join_name}")

    visit(spec.root, "root")
    return kinds


def _kind_of_code(code: int) -> FieldKind:
    """Return how a value of a result set is searched."""
    if code in _INTEGERS:
        return FieldKind.INTEGER
    if code in _NUMBERS:
        return FieldKind.FLOAT
    return FieldKind.DATE if code in _DATES else FieldKind.KEYWORD


def find_missing_indexes(cursor: Any, graph: DocumentGraph, missing: frozenset[TableName] = frozenset()) -> list[str]:
    """Return the CREATE INDEX statements without which a lookup, or the building of documents, reads whole tables;
    `missing` are tables that are not there."""
    needed: dict[tuple[TableName, tuple[str, ...]], None] = {}
    for node in graph.nodes:
        if node.parent is None:
            continue
        upper = node.link.upper if node.link else node.on
        needed[node.parent.table.name, tuple(pair.upper.name for pair in upper)] = None
        if node.link is not None:
            needed[node.link.table.name, tuple(pair.lower.name for pair in node.link.upper)] = None
            needed[node.link.table.name, tuple(pair.upper.name for pair in node.link.lower)] = None
        needed[node.table.name, tuple(column.name for column in node.lower_columns)] = None
    indexes = {name: _read_indexes(cursor, name) for name, _ in needed if name not in missing}
    return [
        f"CREATE INDEX {quote_name('_'.join((name.table, *columns))[:64])} ON {quote_table(name)}"
        f" ({', '.join(map(quote_name, columns))})"
        for name, columns in needed
        if name in indexes and not any(index[:1] and index[0] in columns for index in indexes[name])
    ]


def _read_indexes(cursor: Any, table: TableName) -> list[list[str]]:
    """Return the columns of each index of a table."""
    cursor.execute(_FIRST_COLUMNS, (table.schema, table.table))
    indexes: dict[str, list[str]] = {}
    for index, column in cursor.fetchall():
        indexes.setdefault(str(index), []).append(str(column))
    return list(indexes.values())
