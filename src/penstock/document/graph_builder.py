"""Resolves a document spec against tables: names to columns, joins to nodes, with an error for what does not fit."""

from collections.abc import Mapping, Sequence

from penstock.document.field_kind import kind_of_column, kind_of_value
from penstock.document.graph import (
    REFERENCES_FIELD,
    ColumnPair,
    DocumentField,
    DocumentGraph,
    DocumentNode,
    LinkTable,
    Schemas,
    SortColumn,
)
from penstock.document.spec import DocumentFieldSpec, DocumentSpec, JoinSpec, RootSpec, Scalar
from penstock.document.sql_columns import find_columns
from penstock.document.sql_text import can_be_key, literal, quote_text
from penstock.errors import SchemaError
from penstock.model import Column, TableName, TableSchema, WireType
from penstock.model.table import are_exact_labels
from penstock.search.index import FieldKind
from penstock.snapshot.key_column import quote_name

ExpressionKinds = Mapping[tuple[TableName, str], FieldKind]
UniqueKeys = Mapping[TableName, Sequence[Sequence[str]]]

_LABELS = (WireType.ENUM, WireType.SET)
_NO_SOFT_DELETE = {WireType.VARCHAR, WireType.STRING, WireType.BLOB, WireType.ENUM, WireType.SET, WireType.JSON}


def resolve_spec(
    spec: DocumentSpec,
    schemas: Schemas,
    kinds: ExpressionKinds | None = None,
    unique_keys: UniqueKeys | None = None,
) -> DocumentGraph:
    """Resolve a spec; a table, column or key that does not fit is a SchemaError. `kinds` says how SQL expressions
    without a type are searched: else as keywords. `unique_keys` are those of tables beside their primary keys."""
    return GraphBuilder(spec, schemas, kinds or {}, unique_keys or {}).build()


class GraphBuilder:
    """Resolves the names of one spec.

    graph = GraphBuilder(spec, schemas, {}, {}).build()
    """

    def __init__(self, spec: DocumentSpec, schemas: Schemas, kinds: ExpressionKinds, unique_keys: UniqueKeys) -> None:
        self._spec, self._schemas, self._kinds, self._unique_keys = spec, schemas, kinds, unique_keys

    def build(self) -> DocumentGraph:
        """Return the graph of the spec."""
        spec = self._spec.root
        table = self._table(spec.table)
        root = DocumentNode((), table, self._id(table, spec), self._fields(table, spec, ()))
        self._add_joins(root, spec.joins)
        routing = self._column(table, spec.routing) if spec.routing else None
        if routing is not None and (not can_be_key(routing) or routing.charset == "binary"):
            raise self._error(f"{table.name}.{routing.name} cannot be the routing: its text is not exact")
        graph = DocumentGraph(self._spec, root, self._condition(spec, table), routing)
        self._check_transform(graph)
        return graph

    def _check_transform(self, graph: DocumentGraph) -> None:
        """Raise when a field that a transform adds is no field beside those that the tables give."""
        added = self._spec.transform.fields if self._spec.transform is not None else {}
        fields = {".".join((*node.path, part.name)): part.kind for node in graph.nodes for part in node.fields}
        taken = {*fields, *(node.name for node in graph.nodes if node.path), REFERENCES_FIELD}
        values = {*added, *(path for path, kind in fields.items() if kind is not None)}  # the others may be objects
        for path in added:
            if not all(path.split(".")):
                raise self._error(f"a field cannot be called '{path}': a name is missing")
            if path in taken:
                raise self._error(
                    f"the transform adds the field '{path}', which the document has without it: add one with another"
                    " name, or say the `type` of the field where it is"
                )
            if above := next((value for value in values if path.startswith(f"{value}.")), None):
                raise self._error(f"the transform adds the field '{path}', but '{above}' is a value and no object")

    def _id(self, table: TableSchema, spec: RootSpec) -> tuple[Column, ...]:
        """Return the columns of the id: the primary key, or a unique key without NULL that the spec names."""
        columns = tuple(self._column(table, name) for name in spec.id or table.key)
        names = tuple(column.name for column in columns)
        unique_keys = (table.key, *self._unique_keys.get(table.name, ()))
        if not names or names not in {tuple(key) for key in unique_keys}:
            raise self._error(
                f"the id must be the primary key of {table.name}, which is ({', '.join(table.key) or 'missing'}),"
                f" or another unique key, not ({', '.join(names)})"
            )
        if column := next((column for column in columns if column.nullable and column.name not in table.key), None):
            raise self._error(f"the id has the column {column.name}, which may be NULL: make it NOT NULL")
        self._check_exact(table, columns, "the root table")
        if label := next(
            (
                column
                for column in columns
                if column.type in _LABELS and not (column.labels and are_exact_labels(column))
            ),
            None,
        ):
            raise self._error(f"the id has the column {label.name}, an ENUM or SET whose labels cannot be read exactly")
        return columns

    def _add_joins(self, parent: DocumentNode, joins: Mapping[str, JoinSpec]) -> None:
        """Add the joined tables of a node, and theirs."""
        for name, join in joins.items():
            path = (*parent.path, name)
            if any(part.name == name for part in parent.fields):
                raise self._error(f"'{'.'.join(path)}' is the name of a field and of a join")
            table = self._table(join.table)
            on, link = self._resolve_on(parent, table, join, ".".join(path))
            node = DocumentNode(
                path,
                table,
                self._key(table, f"join '{'.'.join(path)}'"),
                self._fields(table, join, path),
                parent,
                on,
                link,
                is_many=join.many,
                is_nested=join.nested,
                filter=self._sql(join.filter, table),
                order=tuple(self._sort(table, text) for text in join.order),
                limit=join.limit,
            )
            if not join.many and not self._is_unique(table, node.lower_columns, link):
                raise self._error(
                    f"join '{node.name}' may find several rows of {table.name}: join its primary key"
                    f" ({', '.join(table.key)}) or a unique key, or say `many: true`"
                )
            parent.children.append(node)
            self._add_joins(node, join.joins)

    def _resolve_on(
        self, parent: DocumentNode, table: TableSchema, join: JoinSpec, name: str
    ) -> tuple[tuple[ColumnPair, ...], LinkTable | None]:
        """Return the columns by which a table is joined, and the link table if there is one."""
        if join.through is None:
            return self._pairs(parent.table, table, join.on or {}, name), None
        link = self._table(join.through.table)
        upper = self._pairs(parent.table, link, join.through.on, name)
        return (), LinkTable(link, upper, self._pairs(link, table, join.through.to, name))

    def _pairs(
        self, upper: TableSchema, lower: TableSchema, on: Mapping[str, str], name: str
    ) -> tuple[ColumnPair, ...]:
        """Return pairs of columns that are equal in joined rows."""
        pairs = tuple(ColumnPair(self._column(upper, above), self._column(lower, below)) for above, below in on.items())
        for pair in pairs:
            for column, table in ((pair.upper, upper), (pair.lower, lower)):
                if not can_be_key(column):
                    raise self._error(f"join '{name}': {table.name}.{column.name} has a type that cannot be joined by")
        return pairs

    def _fields(self, table: TableSchema, spec: RootSpec | JoinSpec, path: Sequence[str]) -> tuple[DocumentField, ...]:
        """Return the fields that a table gives."""
        return tuple(self._field(table, name, part, path) for name, part in spec.fields.items())

    def _field(self, table: TableSchema, name: str, spec: DocumentFieldSpec, path: Sequence[str]) -> DocumentField:
        """Return one field."""
        if "." in name or not name:
            raise self._error(f"a field cannot be called '{name}': dots are for the fields of joins")
        if spec.column is not None:
            column = self._column(table, spec.column)
            return DocumentField(name, spec.type or kind_of_column(column), column)
        if spec.sql is not None:
            kind = spec.type or self._kinds.get((table.name, spec.sql), FieldKind.KEYWORD)
            return DocumentField(name, kind, sql=self._sql(spec.sql, table))
        if spec.value is None:
            raise self._error(f"field '{'.'.join((*path, name))}' has no value")
        return DocumentField(name, spec.type or kind_of_value(spec.value), value=spec.value)

    def _condition(self, spec: RootSpec, table: TableSchema) -> str:
        """Return the SQL condition of searchable root rows."""
        conditions: list[str] = []
        if isinstance(spec.where, str):
            conditions.append(f"({self._sql(spec.where, table)})")
        else:
            for name, values in (spec.where or {}).items():
                column = quote_name(self._column(table, name).name)
                conditions.append(f"{column} IN ({', '.join(map(_constant, values))})")
        if spec.soft_delete:
            column = self._column(table, spec.soft_delete)
            if column.type in _NO_SOFT_DELETE:
                raise self._error(f"soft_delete: {table.name}.{column.name} is a text; name a number, a date or a time")
            name = quote_name(column.name)
            conditions.append(f"({name} IS NULL OR {name} = 0)")
        return " AND ".join(conditions)

    def _sort(self, table: TableSchema, text: str) -> SortColumn:
        """Return a column by which an array is ordered; a minus before it means descending."""
        return SortColumn(self._column(table, text.removeprefix("-")), text.startswith("-"))

    def _sql(self, text: str | None, table: TableSchema) -> str:
        """Return an SQL expression after it was checked to be one."""
        try:
            find_columns(text or "", table)
        except ValueError as error:
            raise self._error(f"{table.name}: {error}") from None
        return (text or "").strip()

    def _is_unique(self, table: TableSchema, columns: Sequence[Column], link: LinkTable | None) -> bool:
        """Return whether a join finds one row at most."""
        names = {column.name for column in columns}
        return link is None and any(set(key) <= names for key in (table.key, *self._unique_keys.get(table.name, ())))

    def _key(self, table: TableSchema, what: str) -> tuple[Column, ...]:
        """Return the columns of the primary key."""
        key = tuple(self._column(table, name) for name in table.key)
        if not key:
            raise self._error(f"{what}: {table.name} has no primary key, by which its rows could be found")
        self._check_exact(table, key, what)
        return key

    def _check_exact(self, table: TableSchema, key: Sequence[Column], what: str) -> None:
        """Raise SchemaError when rows cannot be found by a column of a key."""
        for column in key:
            if not can_be_key(column):
                raise self._error(f"{what}: the key {table.name}.{column.name} has a type whose text is not exact")

    def _table(self, name: str) -> TableSchema:
        """Return a table by its name."""
        return self._schemas[TableName.parse(name)]

    def _column(self, table: TableSchema, name: str) -> Column:
        """Return a column of a table; SchemaError if there is none. Names are compared as MySQL does."""
        for column in table.declared_columns:
            if column.name.casefold() == name.casefold():
                return column
        known = ", ".join(column.name for column in table.declared_columns)
        raise self._error(f"table {table.name} has no column {name}; it has {known}")

    def _error(self, text: str) -> SchemaError:
        """Return the error for a spec that does not fit the tables."""
        return SchemaError(f"document '{self._spec.index}': {text}")


def _constant(value: Scalar) -> str:
    """Return a constant of the spec in SQL."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return quote_text(value) if isinstance(value, str) else repr(value) if isinstance(value, float) else literal(value)
