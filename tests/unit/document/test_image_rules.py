"""For which specs documents are built from the log, and what is said about the others."""

from dataclasses import replace
from typing import Any

import pytest

from penstock.document import DocumentGraph, DocumentSpec
from penstock.document.graph import RowReference
from penstock.document.graph_builder import resolve_spec
from penstock.document.image_rules import find_read_back_reasons
from penstock.model import Column, WireType
from tests.support.document_shop import CUSTOMER, CUSTOMER_JOIN, ORDERS, TABLES, graph_of, integer, spec_of


def graph_with(column: Column, **root: Any) -> DocumentGraph:
    """Return the graph of orders that have one more column."""
    table = replace(TABLES[ORDERS], columns=(*TABLES[ORDERS].columns, column))
    return resolve_spec(spec_of(**root), TABLES | {ORDERS: table})


@pytest.mark.parametrize(
    "root",
    [
        {},
        {"fields": {"total": {"column": "total", "type": "float"}, "kind": {"value": "order"}}},
        {"routing": "customer_id"},
        {"routing": "state"},
        {"soft_delete": "is_deleted"},
        {"soft_delete": "deleted_at"},
        {"where": {"customer_id": [1, -2], "IS_DELETED": [False]}},
    ],
)
def test_documents_of_columns_and_constants_of_one_table_are_built_from_the_log(root: dict[str, Any]) -> None:
    assert find_read_back_reasons(graph_of(**root)) == []


@pytest.mark.parametrize(
    ("root", "reason"),
    [
        ({"joins": {"customer": CUSTOMER_JOIN}}, "it has joins"),
        ({"fields": [{"gross": {"sql": "total * 2"}}]}, "field gross is an SQL expression"),
        ({"where": "total > 0"}, "where is an SQL condition"),
        ({"where": {"state": ["open"]}}, "where compares state, which only the database does exactly"),
        ({"where": {"total": [1]}}, "where compares total, which only the database does exactly"),
        ({"where": {"customer_id": [1, "2"]}}, "where compares customer_id, which only the database does exactly"),
        ({"where": {"customer_id": [1.0]}}, "where compares customer_id, which only the database does exactly"),
    ],
)
def test_what_depends_on_the_database_is_read_back(root: dict[str, Any], reason: str) -> None:
    assert find_read_back_reasons(graph_of(**root)) == [reason]


def test_documents_with_a_transform_are_read_back() -> None:
    content = {"index": "orders", "transform": "copy:copy", "root": {"table": "shop.orders", "fields": ["number"]}}
    graph = resolve_spec(DocumentSpec.model_validate(content), TABLES)
    assert find_read_back_reasons(graph) == ["it has a transform"]


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (
            Column("code", WireType.STRING, size=16, charset="binary", declared="uuid"),
            "is UUID, which the log does not tell from BINARY",
        ),
        (
            Column("code", WireType.STRING, size=16, charset="binary", declared="inet6"),
            "is INET6, which the log does not tell from BINARY",
        ),
        (Column("code", WireType.ENUM, size=1, charset="utf16", labels=("a",)), "has labels in utf16"),
    ],
)
def test_a_type_that_the_log_shows_otherwise_is_read_back(column: Column, reason: str) -> None:
    assert find_read_back_reasons(graph_with(column, fields=["code"])) == [f"field code {reason}"]
    assert find_read_back_reasons(graph_with(column)) == [], "which no document has"


@pytest.mark.parametrize("kind", [WireType.DOUBLE, WireType.YEAR])
def test_a_mark_of_deleted_rows_that_is_not_compared_here_is_read_back(kind: WireType) -> None:
    graph = graph_with(Column("gone", kind, size=8), soft_delete="gone")
    assert find_read_back_reasons(graph) == ["soft_delete names gone, which only the database compares exactly"]


def test_rows_that_change_unseen_are_read_back() -> None:
    graph = graph_of()
    parent = TABLES[CUSTOMER]
    reference = RowReference(graph.root, (integer("customer_id"),), parent, (integer("id"),))
    (reason,) = find_read_back_reasons(replace(graph, references=(reference,)))
    assert reason == "a foreign key that cascades changes rows that the log does not have"
    (reason,) = find_read_back_reasons(replace(graph, keeps_history=True))
    assert "system versioning" in reason
