"""Search indexes: documents in by version, out by search; one interface, an adapter module per product.

Invariant: importing this package needs no optional library; `embedded` and `http` do, and say which extra.
"""

from penstock.search.index import (
    DOCUMENT_IDS,
    DOCUMENTS,
    OPERATIONS,
    STORED_DOCUMENTS,
    FieldKind,
    Hit,
    IndexLayout,
    Rejection,
    SearchIndex,
    WriteReport,
)

__all__ = [
    "DOCUMENTS",
    "DOCUMENT_IDS",
    "OPERATIONS",
    "STORED_DOCUMENTS",
    "FieldKind",
    "Hit",
    "IndexLayout",
    "Rejection",
    "SearchIndex",
    "WriteReport",
]
