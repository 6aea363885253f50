"""What was known of the tables of a document when they were there: while one is missing, the spec is resolved with it.

It is kept beside the checkpoint, so that a table which is dropped while sync is stopped is followed after a restart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from penstock.document.graph import DocumentGraph
from penstock.model import Column, TableName, TableSchema, WireType
from penstock.search.index import FieldKind

ExpressionKinds = Mapping[tuple[TableName, str], FieldKind]


@dataclass(frozen=True, slots=True)
class DocumentTables:
    """Tables of a document spec with what a graph needs to know of them.

    known = DocumentTables.of(graph, kinds)
    assert DocumentTables.from_json(known.to_json()) == known
    """

    tables: Mapping[TableName, TableSchema] = field(default_factory=dict[TableName, TableSchema])
    unique_keys: Mapping[TableName, Sequence[Sequence[str]]] = field(
        default_factory=dict[TableName, Sequence[Sequence[str]]]
    )
    generated: Mapping[TableName, frozenset[str]] = field(default_factory=dict[TableName, frozenset[str]])
    kinds: ExpressionKinds = field(default_factory=dict[tuple[TableName, str], FieldKind])  # of SQL expressions

    @classmethod
    def of(cls, graph: DocumentGraph, kinds: ExpressionKinds) -> "DocumentTables":
        """Return what a graph and the kinds of its SQL expressions say of their tables."""
        return cls(dict(graph.tables), graph.unique_keys, graph.generated, kinds)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "tables": [asdict(schema) for schema in self.tables.values()],
            "unique_keys": [[str(name), [list(key) for key in keys]] for name, keys in self.unique_keys.items()],
            "generated": [[str(name), sorted(columns)] for name, columns in self.generated.items()],
            "kinds": [[str(name), sql, kind.value] for (name, sql), kind in self.kinds.items()],
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "DocumentTables":
        """Return what `to_json` returned as plain data."""
        schemas = [_schema(fields) for fields in plain["tables"]]
        return cls(
            {schema.name: schema for schema in schemas},
            {TableName.parse(name): [tuple(key) for key in keys] for name, keys in plain["unique_keys"]},
            {TableName.parse(name): frozenset(columns) for name, columns in plain["generated"]},
            {(TableName.parse(name), sql): FieldKind(kind) for name, sql, kind in plain["kinds"]},
        )


def _schema(fields: Mapping[str, Any]) -> TableSchema:
    """Return a table from the fields of its schema."""
    columns = (
        replace(Column(**column), type=WireType(column["type"]), labels=tuple(column["labels"]))
        for column in fields["columns"]
    )
    return TableSchema(
        TableName(**fields["name"]),
        tuple(columns),
        tuple(fields["key"]),
        fields["has_signs"],
        tuple(fields["key_prefixes"]),
    )
