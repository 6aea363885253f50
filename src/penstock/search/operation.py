"""The checks every batch of operations passes before any index sees it, column by column.

Invariant: what `admit_operations` lets through is framed safely for every product: ids of 1 to 512 bytes, unique
together with their routing, versions from 0 up, and documents that look like a JSON object on one line.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.errors import SinkError
from penstock.search import _json
from penstock.search.index import OPERATIONS, Rejection

MAX_ID_BYTES = 512  # both products refuse the whole request for one longer id


@dataclass(frozen=True, slots=True)
class AdmittedOperations:
    """The operations that an index may try, and those that none would accept."""

    ids: pa.StringArray
    versions: NDArray[np.int64]
    documents: pa.StringArray
    routings: pa.StringArray
    rejected: tuple[Rejection, ...]
    has_repeated_ids: bool
    """Whether an id has several operations, with different routings."""

    def select(self, chosen: NDArray[np.bool_]) -> "AdmittedOperations":
        """Return the operations for which `chosen` is true, without the rejected ones."""
        mask = pa.array(chosen)
        return AdmittedOperations(
            self.ids.filter(mask),
            self.versions[chosen],
            self.documents.filter(mask),
            self.routings.filter(mask),
            (),
            self.has_repeated_ids,
        )

    def reject(self, row: int, reason: str) -> Rejection:
        """Return the rejection of one operation."""
        return Rejection(
            self.ids[row].as_py(),
            reason,
            int(self.versions[row]),
            self.routings[row].as_py(),
            self.documents[row].as_py(),
        )


def admit_operations(operations: pa.Table) -> AdmittedOperations:
    """Check a batch of operations: a broken table raises, a broken operation is rejected alone."""
    operations = _add_routing(operations)
    has_repeated_ids = _check_table(operations)
    documents = _combine_column(operations, "document")
    if pc.any(pc.match_substring(documents, "\n")).as_py():
        # In JSON a bare line feed is only white space, in a bulk body it ends the document.
        documents = pc.replace_substring(documents, "\n", " ")
    batch = AdmittedOperations(
        _combine_column(operations, "id"),
        _combine_column(operations, "version").to_numpy(zero_copy_only=False),
        documents,
        _combine_column(operations, "routing"),
        (),
        has_repeated_ids,
    )
    length = pc.binary_length(batch.ids)
    bad_id = pc.or_(pc.equal(length, 0), pc.greater(length, MAX_ID_BYTES))
    is_object = pc.starts_with(pc.utf8_ltrim(documents, characters=" \t\r"), "{")
    bad_document = pc.or_(pc.invert(pc.fill_null(is_object, fill_value=True)), _find_half_characters(documents))
    bad = pc.or_(bad_id, bad_document)
    if not pc.any(bad).as_py():
        return batch
    rejected = (
        *_reject_rows(batch, bad_id, f"an id has 1 to {MAX_ID_BYTES} bytes"),
        *_reject_rows(batch, pc.and_not(bad_document, bad_id), "the document is not a JSON object of Unicode text"),
    )
    good = batch.select(pc.invert(bad).to_numpy(zero_copy_only=False))
    return AdmittedOperations(good.ids, good.versions, good.documents, good.routings, rejected, has_repeated_ids)


def _add_routing(operations: pa.Table) -> pa.Table:
    """Return the table with a routing column, in which the empty text is null: both products read it as no routing. A
    delete under the empty one then says nothing beside an operation without routing.
    """
    if "routing" not in operations.schema.names:
        return operations.append_column(OPERATIONS.field("routing"), pa.nulls(operations.num_rows, pa.string()))
    routing = operations.column("routing")
    is_whole = set(operations.schema.names) == set(OPERATIONS.names)
    is_empty = pc.equal(routing, "") if is_whole and routing.type == pa.string() else None
    if is_empty is None or not pc.any(is_empty).as_py():
        return operations
    number = operations.schema.get_field_index("routing")
    cleaned = pc.if_else(is_empty, pa.scalar(None, pa.string()), routing)
    unrouted = operations.column("id").filter(pc.is_null(routing))
    is_delete = pc.and_(pc.fill_null(is_empty, fill_value=False), pc.is_null(operations.column("document")))
    is_said = pc.and_(is_delete, pc.is_in(operations.column("id"), value_set=unrouted))
    return operations.set_column(number, OPERATIONS.field("routing"), cleaned).filter(pc.invert(is_said))


def _check_table(operations: pa.Table) -> bool:
    """Raise if the table is not one of OPERATIONS, unique by id and routing; return whether an id is there twice."""
    columns = {field.name: field.type for field in operations.schema}
    if columns != {field.name: field.type for field in OPERATIONS}:
        raise SinkError(f"a batch of operations has the columns {OPERATIONS.to_string()}; got {columns}")
    for name in ("id", "version"):
        if operations.column(name).null_count:
            raise SinkError(f"a batch of operations has a null {name}; only documents and routings may be null")
    if not operations.num_rows:
        return False
    if pc.min(operations.column("version")).as_py() < 0:
        raise SinkError("versions are not negative: they come from a change's sequence")
    if pc.count_distinct(operations.column("id")).as_py() == operations.num_rows:
        return False
    counts = operations.group_by(["id", "routing"]).aggregate([("version", "count")])
    if counts.num_rows != operations.num_rows:
        twice: list[Any] = counts.filter(pc.greater(counts.column("version_count"), 1)).column("id").to_pylist()
        raise SinkError(f"a batch has one operation per document and routing; ids more than once: {twice[:5]}")
    return True


def _find_half_characters(documents: pa.StringArray) -> pa.BooleanArray:
    """Return which documents have half of a surrogate pair. Servers take them, but give back what nobody can read."""
    has_pairs = pc.or_(pc.match_substring(documents, r"\ud"), pc.match_substring(documents, r"\uD"))
    bad = np.zeros(len(documents), np.bool_)
    for row in np.flatnonzero(pc.fill_null(has_pairs, fill_value=False).to_numpy(zero_copy_only=False)).tolist():
        try:
            _json.loads(documents[row].as_py())
        except _json.JSONDecodeError:
            bad[row] = True
    return pa.array(bad)


def _reject_rows(batch: AdmittedOperations, mask: Any, reason: str) -> list[Rejection]:
    """Return a rejection with this reason for each operation in the mask."""
    return [batch.reject(row, reason) for row in np.flatnonzero(mask.to_numpy(zero_copy_only=False)).tolist()]


def _combine_column(table: pa.Table, name: str) -> Any:
    """Return a column as one array."""
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays([pa.array([], column.type), *column.chunks])
