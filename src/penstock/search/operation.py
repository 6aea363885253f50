"""The checks every batch of operations passes before any index sees it, column by column.

Invariant: what `admit` lets through is framed safely for every product: unique ids of 1 to 512 bytes, versions from 0
up, and documents that look like a JSON object on one line.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.errors import SinkError
from penstock.search.index import OPERATIONS, Rejection

MAX_ID_BYTES = 512  # both products refuse the whole request for one longer id


@dataclass(frozen=True, slots=True)
class AdmittedOperations:
    """The operations that an index may try, and those that none would accept."""

    ids: pa.StringArray
    versions: NDArray[np.int64]
    documents: pa.StringArray
    rejected: tuple[Rejection, ...]


def admit_operations(operations: pa.Table) -> AdmittedOperations:
    """Check a batch of operations: a broken table raises, a broken operation is rejected alone."""
    _check_table(operations)
    ids, documents = _combine_column(operations, "id"), _combine_column(operations, "document")
    versions = _combine_column(operations, "version")
    if pc.any(pc.match_substring(documents, "\n")).as_py():
        # In JSON a bare line feed is only white space, in a bulk body it ends the document.
        documents = pc.replace_substring(documents, "\n", " ")
    length = pc.binary_length(ids)
    bad_id = pc.or_(pc.equal(length, 0), pc.greater(length, MAX_ID_BYTES))
    is_object = pc.starts_with(pc.utf8_ltrim(documents, characters=" \t\r"), "{")
    bad_document = pc.invert(pc.fill_null(is_object, fill_value=True))
    bad = pc.or_(bad_id, bad_document)
    rejected: tuple[Rejection, ...] = ()
    if pc.any(bad).as_py():
        rejected = (
            *_reject_ids(ids.filter(bad_id), f"an id has 1 to {MAX_ID_BYTES} bytes"),
            *_reject_ids(ids.filter(pc.and_not(bad_document, bad_id)), "the document is not a JSON object"),
        )
        good = pc.invert(bad)
        ids, documents, versions = ids.filter(good), documents.filter(good), versions.filter(good)
    return AdmittedOperations(ids, versions.to_numpy(zero_copy_only=False), documents, rejected)


def _check_table(operations: pa.Table) -> None:
    """Raise if the table is not one of OPERATIONS with unique ids."""
    columns = {field.name: field.type for field in operations.schema}
    if columns != {field.name: field.type for field in OPERATIONS}:
        raise SinkError(f"a batch of operations has the columns {OPERATIONS.to_string()}; got {columns}")
    for name in ("id", "version"):
        if operations.column(name).null_count:
            raise SinkError(f"a batch of operations has a null {name}; only documents may be null")
    if not operations.num_rows:
        return
    ids = operations.column("id")
    if pc.count_distinct(ids).as_py() != operations.num_rows:
        counts = pc.value_counts(ids)
        twice: list[Any] = counts.filter(pc.greater(counts.field("counts"), 1)).field("values").to_pylist()
        raise SinkError(f"a batch has one operation per document; ids more than once: {twice[:5]}")
    if pc.min(operations.column("version")).as_py() < 0:
        raise SinkError("versions are not negative: they come from a change's sequence")


def _reject_ids(ids: pa.StringArray, reason: str) -> list[Rejection]:
    """Return a rejection with this reason for each id."""
    return [Rejection(key, reason) for key in ids.to_pylist()]


def _combine_column(table: pa.Table, name: str) -> Any:
    """Return a column as one array."""
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays([pa.array([], column.type), *column.chunks])
