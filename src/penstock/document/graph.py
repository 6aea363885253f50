"""The document graph: a spec resolved against the live tables.

A node is one table of the document: the root, or a join. Two nodes may be of one table. Everything else works on this
graph: which columns matter, how documents are read, and which documents a changed row belongs to.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.document.spec import DocumentSpec, Scalar
from penstock.document.sql_columns import find_columns
from penstock.model import Column, TableName, TableSchema
from penstock.search.index import FieldKind, IndexLayout

# The field in which a document names the rows that it depends on by foreign keys that cascade.
REFERENCES_FIELD = "penstock_references"

Schemas = Mapping[TableName, TableSchema]


@dataclass(frozen=True, slots=True)
class DocumentField:
    """One field that a node gives: a column, an SQL expression, or a constant."""

    name: str
    kind: FieldKind | None  # None: kept in the document, not searched
    column: Column | None = None
    sql: str = ""
    value: Scalar | None = None


@dataclass(frozen=True, slots=True)
class ColumnPair:
    """A column of the table above, and the column of the table below that equals it."""

    upper: Column
    lower: Column


@dataclass(frozen=True, slots=True)
class LinkTable:
    """The table in the middle of a many-to-many join."""

    table: TableSchema
    upper: tuple[ColumnPair, ...]  # parent node and link table
    lower: tuple[ColumnPair, ...]  # link table and joined table


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column by which an array is ordered."""

    column: Column
    is_descending: bool


@dataclass(frozen=True, slots=True, eq=False)
class DocumentNode:
    """One table of a document with the fields that it gives."""

    path: tuple[str, ...]  # of joins from the root, which has none
    table: TableSchema
    key: tuple[Column, ...]
    fields: tuple[DocumentField, ...]
    parent: "DocumentNode | None" = None
    on: tuple[ColumnPair, ...] = ()  # without a link table
    link: LinkTable | None = None
    is_many: bool = False
    is_nested: bool = False
    filter: str = ""
    order: tuple[SortColumn, ...] = ()
    limit: int | None = None
    children: "list[DocumentNode]" = field(default_factory=list["DocumentNode"])

    @property
    def name(self) -> str:
        """Return the path of joins as text."""
        return ".".join(self.path) or "root"

    @property
    def lower_columns(self) -> tuple[Column, ...]:
        """Return the columns of this table by which it is joined to what is above."""
        return tuple(pair.lower for pair in (self.link.lower if self.link else self.on))

    @property
    def used_columns(self) -> frozenset[str]:
        """Return the columns of the table whose change may change a document, apart from those of the root's rules."""
        names = {column.name for column in (*self.key, *self.lower_columns)}
        names |= {column.name for column in (part.column for part in self.fields) if column is not None}
        names |= {part.column.name for part in self.order}
        for text in (self.filter, *(part.sql for part in self.fields)):
            names |= find_columns(text, self.table)
        for child in self.children:
            names |= {pair.upper.name for pair in (child.link.upper if child.link else child.on)}
        return frozenset(names)


@dataclass(frozen=True, slots=True, eq=False)
class RowReference:
    """A row of another table with which rows of a node, and so documents, change without a row in the log: the parent
    of a foreign key that cascades."""

    node: DocumentNode
    columns: tuple[Column, ...]  # of the node's table
    parent: TableSchema
    parent_columns: tuple[Column, ...]  # that have the same values
    leads_on: bool = False  # the parent row follows others in its turn, which documents name as well


@dataclass(frozen=True, slots=True, eq=False)
class ParentReference:
    """A foreign key that cascades from a parent of documents' rows to a parent of its own. A document names the rows
    that it reaches by such keys, however many tables away."""

    table: TableSchema
    columns: tuple[Column, ...]
    parent: TableSchema
    parent_columns: tuple[Column, ...]  # that have the same values


@dataclass(frozen=True, slots=True, eq=False)
class DocumentGraph:
    """A document spec resolved against the live tables.

    graph = resolve_spec(load_spec(path), {table: read_live_schema(cursor, table) for table in …})
    """

    spec: DocumentSpec
    root: DocumentNode
    condition: str  # of root rows that are searchable; empty: all are
    routing: Column | None
    references: tuple[RowReference, ...] = ()
    parent_references: tuple[ParentReference, ...] = ()  # of all tables that the references above lead on to
    unique_keys: Mapping[TableName, Sequence[Sequence[str]]] = field(
        default_factory=dict[TableName, Sequence[Sequence[str]]]
    )  # of its tables, when they were read last
    generated: Mapping[TableName, frozenset[str]] = field(default_factory=dict[TableName, frozenset[str]])
    folds_names: bool = False  # the server takes names of tables in any letters (lower_case_table_names)
    keeps_history: bool = False  # the root table has system versioning: its log has rows that a read does not see

    @property
    def nodes(self) -> list[DocumentNode]:
        """Return all nodes, each after its parent."""
        return list(_walk(self.root))

    @property
    def tables(self) -> dict[TableName, TableSchema]:
        """Return all tables, link tables among them."""
        tables = {node.table.name: node.table for node in self.nodes}
        tables |= {part.parent.name: part.parent for part in (*self.references, *self.parent_references)}
        return tables | {node.link.table.name: node.link.table for node in self.nodes if node.link}

    @property
    def used_columns(self) -> dict[TableName, frozenset[str]]:
        """Return for each table the columns whose change may change a document."""
        used: dict[TableName, frozenset[str]] = {}
        for node in self.nodes:
            names = node.used_columns
            if node is self.root:
                names |= find_columns(self.condition, node.table)
                names |= frozenset([self.routing.name] if self.routing is not None else [])
            used[node.table.name] = used.get(node.table.name, frozenset()) | names
            if node.link is not None:
                names = {pair.lower.name for pair in node.link.upper} | {pair.upper.name for pair in node.link.lower}
                used[node.link.table.name] = used.get(node.link.table.name, frozenset()) | names
        followed = [(part.node.table, part) for part in self.references]
        followed += [(part.table, part) for part in self.parent_references]
        for table, part in followed:
            for name, columns in ((part.parent.name, part.parent_columns), (table.name, part.columns)):
                used[name] = used.get(name, frozenset()) | {column.name for column in columns}
        # A generated column is not in every image, and changes with columns that only the server knows.
        for name, names in used.items():
            if names & self.generated.get(name, frozenset()):
                used[name] = frozenset(column.name for column in self.tables[name].columns)
        return used

    @property
    def has_conditions_on_references(self) -> bool:
        """Return whether rows may begin to match `where` or a `filter` when a foreign key is set to NULL."""
        for reference in self.references:
            node, names = reference.node, {column.name for column in reference.columns}
            condition = self.condition if node is self.root else node.filter
            if names & find_columns(condition, node.table):
                return True
        return False

    @property
    def field_kinds(self) -> dict[str, FieldKind]:
        """Return how each field of the document is searched, by its path, also of those that a transform adds."""
        kinds = {
            ".".join((*node.path, part.name)): part.kind
            for node in self.nodes
            for part in node.fields
            if part.kind is not None
        }
        kinds |= self.spec.transform.fields if self.spec.transform is not None else {}
        return kinds | ({REFERENCES_FIELD: FieldKind.KEYWORD} if self.references else {})

    @property
    def reference_names(self) -> frozenset[str]:
        """Return which columns of which nodes, and of their parents, refer to which tables by foreign keys that
        cascade."""
        named = [(part.node.name, part) for part in self.references]
        named += [(f"parent {part.table.name}", part) for part in self.parent_references]
        return frozenset(
            f"{name}({','.join(column.name for column in part.columns)})->{part.parent.name}" for name, part in named
        )

    @property
    def layout(self) -> IndexLayout:
        """Return what the index is created with besides its fields."""
        nested = frozenset(node.name for node in self.nodes if node.is_nested)
        return IndexLayout(nested, self.spec.mapping, self.spec.settings)


def _walk(node: DocumentNode) -> Iterator[DocumentNode]:
    """Yield a node and all below it."""
    yield node
    for child in node.children:
        yield from _walk(child)
