"""What a document spec means for the source: what its documents are made of, what touches them, and by which SQL.

Everything here is plain data, for a text, for JSON, and for a picture.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.document.graph import (
    REFERENCES_FIELD,
    ColumnPair,
    DocumentGraph,
    DocumentNode,
    ParentReference,
    RowReference,
)
from penstock.document.image_rules import find_read_back_reasons
from penstock.document.parent_rows import ParentQueries, find_parent_queries
from penstock.document.queries import NodeQueries, RootLookup, find_lookups
from penstock.document.query_plan import PlanStep, QueryExplainer, any_value
from penstock.document.sql_columns import find_columns
from penstock.document.sql_text import Key, literal
from penstock.model import Column, TableName
from penstock.schema.foreign_keys import CascadingKey
from penstock.search.mapping import build_creation_body


@dataclass(frozen=True, slots=True)
class NodeReport:
    """One table of the document."""

    path: tuple[str, ...]
    table: str
    join: str  # root, one, many, or parent: read for its foreign keys only
    on: tuple[str, ...]
    through: str
    through_on: tuple[str, ...]
    through_to: tuple[str, ...]
    fields: tuple[str, ...]
    filter: str
    order: tuple[str, ...]
    limit: int | None


@dataclass(frozen=True, slots=True)
class QueryReport:
    """A SELECT with the server's plan for it."""

    purpose: str
    sql: str
    example: Mapping[str, str] | None  # values it was tried with; None: the table has no such row
    plan: tuple[PlanStep, ...]

    @property
    def has_full_scan(self) -> bool:
        """Return whether a table is read from end to end."""
        return any(step.is_full_scan for step in self.plan)


@dataclass(frozen=True, slots=True)
class TouchReport:
    """What a changed row of one table touches."""

    table: str
    node: str
    columns: Mapping[str, tuple[str, ...]]  # whose change matters, with what for
    documents: str  # which ones are written
    query: QueryReport | None  # that finds them; None where none is needed


@dataclass(frozen=True, slots=True)
class ForeignKeyReport:
    """A foreign key whose rows the server changes without logging them."""

    table: str
    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]
    on: tuple[str, ...]  # DELETE, UPDATE
    followed: str


@dataclass(frozen=True, slots=True)
class TransformReport:
    """The function that changes documents before they are indexed."""

    python: str  # as the spec names it
    fields: Mapping[str, str]  # that it adds, with their types


@dataclass(frozen=True, slots=True)
class IndexReport:
    """All that can be said about a document spec."""

    index: str
    nodes: tuple[NodeReport, ...]
    condition: str
    transform: TransformReport | None
    touches: tuple[TouchReport, ...]
    built_from: str  # what a changed document is built from: log or database
    read_back_reasons: tuple[str, ...]  # why it is the database
    queries: tuple[QueryReport, ...]  # that build documents
    missing_indexes: tuple[str, ...]
    foreign_keys: tuple[ForeignKeyReport, ...]
    creation: Mapping[str, Any]  # the body of the request that creates the index


def explain_graph(
    graph: DocumentGraph, keys: Sequence[CascadingKey], missing_indexes: Sequence[str], explainer: QueryExplainer
) -> IndexReport:
    """Return what there is to say about a graph; `keys` are the cascading foreign keys of its tables."""
    reasons = find_read_back_reasons(graph)
    return IndexReport(
        graph.spec.index,
        tuple(_report_nodes(graph)),
        graph.condition,
        _report_transform(graph),
        tuple(_report_touches(graph, explainer)),
        "database" if reasons else "log",
        tuple(reasons),
        tuple(_report_reads(graph, explainer)),
        tuple(missing_indexes),
        tuple(_report_key(graph, key) for key in keys),
        build_creation_body(graph.field_kinds, graph.layout),
    )


def _report_transform(graph: DocumentGraph) -> TransformReport | None:
    """Return the function that changes documents, if there is one."""
    spec = graph.spec.transform
    return (
        None
        if spec is None
        else TransformReport(spec.python.text, {path: str(kind) for path, kind in spec.fields.items()})
    )


def _report_nodes(graph: DocumentGraph) -> Iterator[NodeReport]:
    """Yield all tables of the document, each after the one that leads to it."""
    for node in graph.nodes:
        yield _report_node(graph, node)
        for path, queries in _walk_parents(graph, node):
            yield _report_parent(path, queries)


def _report_reads(graph: DocumentGraph, explainer: QueryExplainer) -> Iterator[QueryReport]:
    """Yield the SELECTs that build documents."""
    for node in graph.nodes:
        yield _report_build(graph, node, explainer)
        for path, queries in _walk_parents(graph, node):
            yield _report_parent_read(path, queries, explainer)


def _report_node(graph: DocumentGraph, node: DocumentNode) -> NodeReport:
    """Return one table of the document."""
    join = "root" if node is graph.root else "many" if node.is_many else "one"
    link = node.link
    order = [f"{part.column.name}{' descending' if part.is_descending else ''}" for part in node.order]
    return NodeReport(
        node.path,
        str(node.table.name),
        join,
        _describe_pairs(node.on),
        str(link.table.name) if link else "",
        _describe_pairs(link.upper) if link else (),
        _describe_pairs(link.lower) if link else (),
        tuple(part.name for part in node.fields),
        node.filter,
        tuple(order),
        node.limit,
    )


def _walk_parents(graph: DocumentGraph, node: DocumentNode) -> Iterator[tuple[tuple[str, ...], ParentQueries]]:
    """Yield the parents of a node that are read for their foreign keys only, each with the path that leads to it and
    before its own parents. Each foreign key is followed once: they may lead in circles."""
    pending = [(node.path, queries) for queries in reversed(find_parent_queries(graph, node))]
    seen = set[tuple[TableName, tuple[Column, ...]]]()
    while pending:
        path, queries = pending.pop()
        step = queries.table.name, queries.reference.columns
        if step in seen:
            continue
        seen.add(step)
        path = (*path, f"parent {queries.parent.name}")
        yield path, queries
        pending += [(path, following) for following in reversed(list(queries.follow_parents()))]


def _report_parent(path: tuple[str, ...], queries: ParentQueries) -> NodeReport:
    """Return a table that is read for its foreign keys only."""
    reference = queries.reference
    pairs = (ColumnPair(upper, lower) for upper, lower in zip(reference.columns, reference.parent_columns, strict=True))
    return NodeReport(
        path, str(queries.parent.name), "parent", _describe_pairs(list(pairs)), "", (), (), (), "", (), None
    )


def _report_parent_read(path: tuple[str, ...], queries: ParentQueries, explainer: QueryExplainer) -> QueryReport:
    """Return the SELECT that reads rows for their foreign keys only."""
    key, example = _find_example(explainer, queries.table.name, queries.key)
    sql = queries.select([key]).sql
    return QueryReport(f"read {'.'.join(path)}", sql, example, explainer.explain(sql))


def _describe_pairs(pairs: Sequence[ColumnPair]) -> tuple[str, ...]:
    """Return pairs of columns as text: that of the table above first."""
    return tuple(f"{pair.upper.name} = {pair.lower.name}" for pair in pairs)


def _report_build(graph: DocumentGraph, node: DocumentNode, explainer: QueryExplainer) -> QueryReport:
    """Return the SELECT that reads the rows of a node."""
    above = node.parent or node
    key, example = _find_example(explainer, above.table.name, above.key)
    query = NodeQueries(graph, node).select_rows([key])
    purpose = f"read {node.name}" if node.parent else "read root rows by key"
    return QueryReport(purpose, query.sql, example, explainer.explain(query.sql))


def _report_touches(graph: DocumentGraph, explainer: QueryExplainer) -> list[TouchReport]:
    """Return what changed rows touch, table by table."""
    root = graph.root
    touches = [TouchReport(str(root.table.name), root.name, find_uses(graph, root), "the document of the row", None)]
    for lookup in find_lookups(graph):
        node, is_link = lookup.node, _is_of_link(lookup)
        uses = _find_link_uses(node) if is_link else find_uses(graph, node)
        name = f"{node.name}, link table" if is_link else node.name
        query = None if lookup.names_roots else _report_lookup(lookup, explainer)
        touches.append(TouchReport(str(lookup.table), name, uses, _describe_documents(lookup), query))
    touches += [_report_reference(part, part.node.name) for part in graph.references]
    touches += [_report_reference(part, str(part.table.name)) for part in graph.parent_references]
    return touches


def _is_of_link(lookup: RootLookup) -> bool:
    """Return whether a lookup is for changed rows of a link table."""
    link = lookup.node.link
    return link is not None and lookup.columns == tuple(pair.lower for pair in link.upper)


def _report_lookup(lookup: RootLookup, explainer: QueryExplainer) -> QueryReport:
    """Return the SELECT that finds the documents of a changed row."""
    key, example = _find_example(explainer, lookup.table, lookup.columns)
    sql = lookup.select_roots([key]).sql
    return QueryReport(f"find documents of a changed row of {lookup.table}", sql, example, explainer.explain(sql))


def _describe_documents(lookup: RootLookup) -> str:
    """Return which documents a changed row touches."""
    columns = ", ".join(column.name for column in lookup.columns)
    if lookup.names_roots:
        return f"the document whose key is {columns} of the row"
    return f"all whose `{lookup.node.name}` is joined by {columns} of the row"


def _report_reference(reference: RowReference | ParentReference, child: str) -> TouchReport:
    """Return what a row touches that others follow by a foreign key."""
    columns = {column.name: ("foreign key",) for column in reference.parent_columns}
    documents = f"all that name the row in `{REFERENCES_FIELD}`, when it is deleted or its key changes"
    return TouchReport(str(reference.parent.name), f"parent of {child}", columns, documents, None)


def find_uses(graph: DocumentGraph, node: DocumentNode) -> dict[str, tuple[str, ...]]:
    """Return the columns of a node's table whose change matters, each with what it is used for."""
    uses: dict[str, list[str]] = {column.name: ["key"] for column in node.key}

    def add(columns: "Sequence[str] | frozenset[str]", use: str) -> None:
        for name in sorted(columns):
            if use not in uses.setdefault(name, []):
                uses[name].append(use)

    add([column.name for column in node.lower_columns], "join")
    for part in node.fields:
        add([part.column.name] if part.column else find_columns(part.sql, node.table), f"field {part.name}")
    add(find_columns(node.filter, node.table), "filter")
    add([part.column.name for part in node.order], "order")
    if node is graph.root:
        add(find_columns(graph.condition, node.table), "where")
        add([graph.routing.name] if graph.routing else [], "routing")
    for child in node.children:
        add([pair.upper.name for pair in (child.link.upper if child.link else child.on)], f"join {child.path[-1]}")
    return {name: tuple(texts) for name, texts in uses.items()}


def _find_link_uses(node: DocumentNode) -> dict[str, tuple[str, ...]]:
    """Return the columns of a link table whose change matters."""
    link = node.link
    pairs = ((pair.lower.name for pair in link.upper), (pair.upper.name for pair in link.lower)) if link else ()
    return {name: ("join",) for names in pairs for name in names}


def _report_key(graph: DocumentGraph, key: CascadingKey) -> ForeignKeyReport:
    """Return a foreign key, and how what the server does by it is followed."""
    is_referenced = any(
        reference.parent.name == key.parent
        and (reference.node.table.name == key.table or _has_link(reference.node, key.table))
        for reference in graph.references
    ) or any(part.parent.name == key.parent and part.table.name == key.table for part in graph.parent_references)
    followed = f"documents name the row of {key.parent} in `{REFERENCES_FIELD}`, and are found by it"
    if not is_referenced:
        followed = f"a change of the row of {key.parent} leads to its documents by the join"
    events = [name for name, is_set in (("DELETE", key.follows_deletes), ("UPDATE", key.follows_updates)) if is_set]
    return ForeignKeyReport(str(key.table), key.columns, str(key.parent), key.parent_columns, tuple(events), followed)


def _has_link(node: DocumentNode, table: TableName) -> bool:
    """Return whether a node is joined through a table."""
    return node.link is not None and node.link.table.name == table


def _find_example(
    explainer: QueryExplainer, table: TableName, columns: Sequence[Column]
) -> tuple[Key, dict[str, str] | None]:
    """Return values to try a SELECT with, and as text; without a row, any."""
    key = explainer.find_example(table, columns)
    if key is None:
        return tuple(map(any_value, columns)), None
    return key, {column.name: literal(value) for column, value in zip(columns, key, strict=True)}
