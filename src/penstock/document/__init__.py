"""Documents: what they are made of, which ones a change touches, and how they are built."""

from penstock.document.build import DocumentBuilder, RowReader
from penstock.document.plan import DocumentPlan
from penstock.document.spec import DocumentSpec, JoinSpec, RootSpec, load_spec
from penstock.document.sync import apply_changes, load_all_documents

__all__ = [
    "DocumentBuilder",
    "DocumentPlan",
    "DocumentSpec",
    "JoinSpec",
    "RootSpec",
    "RowReader",
    "apply_changes",
    "load_all_documents",
    "load_spec",
]
