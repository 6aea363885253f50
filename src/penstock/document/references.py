"""Follows foreign keys that cascade: the server changes their rows without writing them to its log.

A document whose rows depend on a parent row in this way names that row in a field of its own. When the parent row is
deleted, or its key changes, the index says which documents name it. Nothing of this is needed where a table is joined
below its parent: there the change of the parent leads to the document by itself.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.document.document_id import document_id
from penstock.document.graph import ColumnPair, DocumentGraph, DocumentNode, RowReference, Schemas
from penstock.document.sql_text import Key
from penstock.errors import SchemaError
from penstock.model import Column, TableName, TableSchema
from penstock.schema.foreign_keys import CascadingKey

CascadingKeys = Mapping[TableName, Sequence[CascadingKey]]
_MOST_DEPTH = 5


def reference_text(table: TableName, key: Key) -> str:
    """Return how a document names a row that it depends on. Texts that a collation may take for equal have one name:
    a document that is looked at too often does no harm."""
    folded = tuple(_fold(value) if isinstance(value, str) else value for value in key)
    return f"{table}:{document_id(folded)}"


def _fold(text: str) -> str:
    """Return a text without case, accents and blanks at its end."""
    plain = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return plain.casefold().rstrip(" ")


def with_references(graph: DocumentGraph, keys: CascadingKeys, schemas: Schemas) -> DocumentGraph:
    """Return a graph with the references of its rows; nodes that are read for them only are added to it."""
    references: list[RowReference] = []
    for node in graph.nodes:
        _add_references(graph, node, keys, schemas, references, 0)
    return replace(graph, references=tuple(references))


def _add_references(
    graph: DocumentGraph,
    node: DocumentNode,
    keys: CascadingKeys,
    schemas: Schemas,
    references: list[RowReference],
    depth: int,
) -> None:
    """Add the references of the rows of one node, and of its link table."""
    if node.link is not None:
        _add_link_references(graph, node, keys, references)
    for key in keys.get(node.table.name, ()):
        if node.link is None and _is_joined_below(node, key):
            continue
        parent = schemas[key.parent]
        columns, above = _columns(node.table, key.columns), _columns(parent, key.parent_columns)
        references.append(RowReference(node, columns, parent, above))
        # Documents of rows that name each other by their ids lead to each other.
        is_own = key.parent == graph.root.table.name == node.table.name and {*key.parent_columns} == {
            column.name for column in graph.root.key
        }
        if keys.get(key.parent) and not is_own and depth < _MOST_DEPTH:
            hidden = _add_hidden_node(node, parent, columns, above)
            if hidden.is_hidden:  # else it is a join of the document, which is looked at by itself
                _add_references(graph, hidden, keys, schemas, references, depth + 1)


def _add_link_references(
    graph: DocumentGraph, node: DocumentNode, keys: CascadingKeys, references: list[RowReference]
) -> None:
    """Add what the rows of a link table depend on: the joined row, which the document has."""
    link = node.link
    if link is None or node.parent is None:
        return
    for key in keys.get(link.table.name, ()):
        if key.parent == node.table.name:
            columns = _columns(node.table, key.parent_columns)
            references.append(RowReference(node, columns, node.table, columns))
        elif key.parent != node.parent.table.name:
            raise SchemaError(
                f"document '{graph.spec.index}': the rows of the link table {link.table.name} follow those of"
                f" {key.parent} by a foreign key that cascades, which the server does not log: join {key.parent}"
                " itself, or let the key RESTRICT"
            )


def _is_joined_below(node: DocumentNode, key: CascadingKey) -> bool:
    """Return whether a node is joined to the table that its foreign key names, by that key."""
    if node.parent is None or node.parent.table.name != key.parent:
        return False
    pairs = {(pair.upper.name, pair.lower.name) for pair in node.on}
    return pairs == set(zip(key.parent_columns, key.columns, strict=True))


def _add_hidden_node(
    node: DocumentNode, parent: TableSchema, columns: Sequence[Column], above: Sequence[Column]
) -> DocumentNode:
    """Return the node that joins the parent table to a node; one that is read for references only is added if there is
    none."""
    pairs = tuple(ColumnPair(upper, lower) for upper, lower in zip(columns, above, strict=True))
    for child in node.children:
        if child.table.name == parent.name and child.on == pairs and not child.filter:
            return child
    hidden = DocumentNode(
        (*node.path, f"parent {parent.name}"), parent, _columns(parent, parent.key), (), node, pairs, is_hidden=True
    )
    node.children.append(hidden)
    return hidden


def _columns(table: TableSchema, names: Sequence[str]) -> tuple[Column, ...]:
    """Return columns of a table by their names."""
    by_name = {column.name.casefold(): column for column in table.columns}
    return tuple(by_name[name.casefold()] for name in names)
