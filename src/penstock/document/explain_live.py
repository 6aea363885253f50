"""Explains the document spec in a file against a live database."""

from pathlib import Path
from typing import Any

from penstock.document.explain import IndexReport, explain_graph
from penstock.document.live_graph import find_missing_indexes
from penstock.document.query_plan import ServerExplainer
from penstock.document.spec_location import load_checked
from penstock.schema.foreign_keys import read_cascading_keys


def explain_spec(cursor: Any, path: Path) -> IndexReport:
    """Return what there is to say about the spec in a file. Raises ConfigurationError or SchemaError with the line of a
    mistake."""
    graph = load_checked(cursor, path).graph
    keys = [key for table in graph.tables for key in read_cascading_keys(cursor, table)]
    return explain_graph(graph, keys, find_missing_indexes(cursor, graph), ServerExplainer(cursor))
