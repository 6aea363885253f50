"""Four orders in memory, and documents as Python values."""

import json
from typing import Any

from penstock.document import DocumentBuilder, DocumentGraph
from penstock.document.build import BuiltDocuments
from tests.support.document_shop import MemoryRows


def create_orders() -> MemoryRows:
    """Orders 1 and 2 of one customer, 3 of a customer who is gone, and 4 of nobody."""
    memory = MemoryRows()
    memory.insert(
        "orders",
        (1, "A1", "open", "35.00", "2024-02-29 10:00:00", 5),
        (2, "A2", "open", "0.50", None, 5),
        (3, "A3", "draft", None, "0000-00-00 00:00:00", 9),
        (4, "A4", "open", "-1.25", "2024-00-10 10:00:00", None),
        columns="(id, number, state, total, made, customer_id)",
    )
    memory.insert("customer", (5, "Ann", "Porto", 1), (6, "Bob", "Lyon", 2))
    memory.insert("country", (1, "Portugal", "pt"))
    memory.insert("order_line", (1, 2, 20, 8), (1, 1, 10, 7), (2, 1, 30, 7), (2, 2, 40, 99))
    memory.insert("product", (7, "kettle"), (8, "lamp"))
    memory.insert("tag", (1, "red"), (2, "blue"), (3, "green"))
    memory.insert("order_tag", (1, 1), (1, 2), (2, 1), (2, 9))
    return memory


def build_by_id(rows: MemoryRows, graph: DocumentGraph, *keys: int, **options: Any) -> dict[str, Any]:
    """Return the documents of these keys by their ids."""
    with rows.open_view():
        return documents_of(DocumentBuilder(graph, rows, **options).build_documents([(key,) for key in keys]))


def documents_of(built: BuiltDocuments) -> dict[str, Any]:
    """Return documents by their ids."""
    texts: list[str] = built.documents.to_pylist()
    assert len(built) == len(built.keys) == len(texts)
    return {name: json.loads(document) for name, document in zip(built.ids, texts, strict=True)}
