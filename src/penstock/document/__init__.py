"""Documents: what they are made of, which ones a change touches, and how they are built and written."""

from penstock.document.build import DocumentBuilder
from penstock.document.changes import CHANGE_COLUMNS, ChangeReader
from penstock.document.document_tables import DocumentTables
from penstock.document.graph import DocumentGraph
from penstock.document.live_graph import find_missing_indexes, load_graph
from penstock.document.outcome import DeadLetterOutcome, OutcomeLog
from penstock.document.rows import DOCUMENT_DECODING, DocumentRows
from penstock.document.spec import DocumentFieldSpec, DocumentSpec, JoinSpec, RootSpec, load_spec
from penstock.document.spec_location import load_checked
from penstock.document.sync import BatchCounts, DocumentSync, LoadedGraph
from penstock.document.write import (
    DocumentCounts,
    DocumentTotals,
    DocumentWriter,
    LocalWriter,
    TouchedDocument,
    split_operations,
)

__all__ = [
    "CHANGE_COLUMNS",
    "DOCUMENT_DECODING",
    "BatchCounts",
    "ChangeReader",
    "DeadLetterOutcome",
    "DocumentBuilder",
    "DocumentCounts",
    "DocumentFieldSpec",
    "DocumentGraph",
    "DocumentRows",
    "DocumentSpec",
    "DocumentSync",
    "DocumentTables",
    "DocumentTotals",
    "DocumentWriter",
    "JoinSpec",
    "LoadedGraph",
    "LocalWriter",
    "OutcomeLog",
    "RootSpec",
    "TouchedDocument",
    "find_missing_indexes",
    "load_checked",
    "load_graph",
    "load_spec",
    "split_operations",
]
