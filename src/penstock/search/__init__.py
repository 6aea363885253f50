"""Search indexes: documents in by version, out by search; one interface, an adapter module per product.

Invariant: importing this package needs no optional library; `embedded` and `http` do, and say which extra.
"""

from penstock.search.index import (
    DOCUMENTS,
    OPERATIONS,
    FieldKind,
    Hit,
    Rejection,
    SearchIndex,
    WriteReport,
)

__all__ = [
    "DOCUMENTS",
    "OPERATIONS",
    "FieldKind",
    "Hit",
    "Rejection",
    "SearchIndex",
    "WriteReport",
]
