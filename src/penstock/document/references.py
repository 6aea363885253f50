"""Follows foreign keys that cascade: the server changes their rows without writing them to its log.

A document whose rows depend on a parent row in this way names that row in a field of its own, and the parents of that
row, to the last of them (`parent_rows`). When such a row is deleted, or its key changes, the index says which documents
name it. Nothing of this is needed where a table is joined below its parent: there the change of the parent leads to the
document by itself.
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from penstock.document.document_id import document_id
from penstock.document.graph import ColumnPair, DocumentGraph, DocumentNode, ParentReference, RowReference, Schemas
from penstock.document.sql_text import Key
from penstock.errors import SchemaError
from penstock.model import Column, TableName, TableSchema
from penstock.schema.foreign_keys import CascadingKey

CascadingKeys = Mapping[TableName, Sequence[CascadingKey]]


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
    """Return a graph with the references of its rows, and those of the parents that they lead on to."""
    references = [reference for node in graph.nodes for reference in _find_references(graph, node, keys, schemas)]
    reached = [reference.parent.name for reference in references if reference.leads_on]
    parents = tuple(_find_parent_references(reached, keys, schemas))
    return replace(graph, references=tuple(references), parent_references=parents)


def _find_references(
    graph: DocumentGraph, node: DocumentNode, keys: CascadingKeys, schemas: Schemas
) -> Iterator[RowReference]:
    """Yield the references of the rows of one node, and of its link table."""
    if node.link is not None:
        yield from _find_link_references(graph, node, keys)
    for key in keys.get(node.table.name, ()):
        if node.link is None and _is_joined_below(node, key):
            continue
        parent = schemas[key.parent]
        columns, above = _columns(node.table, key.columns), _columns(parent, key.parent_columns)
        leads_on = (
            bool(keys.get(key.parent))
            and not _is_document(graph, node, key)
            and not _is_joined_above(node, parent, columns, above)
        )
        yield RowReference(node, columns, parent, above, leads_on)


def _find_parent_references(
    reached: Sequence[TableName], keys: CascadingKeys, schemas: Schemas
) -> Iterator[ParentReference]:
    """Yield the cascading keys of these tables and of all that they lead to. Each table is looked at once: foreign keys
    may lead in circles."""
    pending = list(dict.fromkeys(reached))
    seen = set(pending)
    while pending:
        name = pending.pop(0)
        for key in keys.get(name, ()):
            table, parent = schemas[name], schemas[key.parent]
            yield ParentReference(table, _columns(table, key.columns), parent, _columns(parent, key.parent_columns))
            if key.parent not in seen:
                seen.add(key.parent)
                pending.append(key.parent)


def _is_document(graph: DocumentGraph, node: DocumentNode, key: CascadingKey) -> bool:
    """Return whether the parent row of a key is the root row of a document that the index always has: then that
    document leads on, because rows name each other by the ids of their documents."""
    root = graph.root
    if graph.condition or graph.spec.transform is not None:
        return False  # the row may have no document
    is_own = key.parent == root.table.name == node.table.name
    return is_own and {*key.parent_columns} == {column.name for column in root.key}


def _find_link_references(graph: DocumentGraph, node: DocumentNode, keys: CascadingKeys) -> Iterator[RowReference]:
    """Yield what the rows of a link table depend on: the joined row, which the document has."""
    link = node.link
    if link is None or node.parent is None:
        return
    for key in keys.get(link.table.name, ()):
        if key.parent == node.table.name:
            columns = _columns(node.table, key.parent_columns)
            yield RowReference(node, columns, node.table, columns)
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


def _is_joined_above(
    node: DocumentNode, parent: TableSchema, columns: Sequence[Column], above: Sequence[Column]
) -> bool:
    """Return whether the document joins the parent rows of a node by the columns of a foreign key: then they are rows
    of a node themselves, whose own references are found there."""
    pairs = tuple(ColumnPair(upper, lower) for upper, lower in zip(columns, above, strict=True))
    return any(child.table.name == parent.name and child.on == pairs and not child.filter for child in node.children)


def _columns(table: TableSchema, names: Sequence[str]) -> tuple[Column, ...]:
    """Return columns of a table by their names."""
    by_name = {column.name.casefold(): column for column in table.columns}
    return tuple(by_name[name.casefold()] for name in names)
