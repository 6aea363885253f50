"""Documents: what they are made of, which ones a change touches, and how they are built."""

from penstock.document.build import DocumentBuilder, RowReader
from penstock.document.plan import DocumentPlan
from penstock.document.spec import DocumentSpec, Join, Root, load_spec
from penstock.document.sync import apply_changes, load_all

__all__ = [
    "DocumentBuilder",
    "DocumentPlan",
    "DocumentSpec",
    "Join",
    "Root",
    "RowReader",
    "apply_changes",
    "load_all",
    "load_spec",
]
