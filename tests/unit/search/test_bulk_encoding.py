"""Bulk bodies: whatever the ids and documents hold, the lines read back as the operations that went in."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.search import bulk
from penstock.search.operation import admit_operations
from tests.support.search_contract import table

KEYS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20) | st.text('"\\\n\r\t\x00\x1f\x7f/', min_size=1)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=6,
)
DOCUMENTS = st.none() | st.builds(
    json.dumps, st.dictionaries(st.text(max_size=3), JSON, max_size=3), indent=st.none() | st.just(2)
)
Batch = dict[str, tuple[int, str | None, str | None]]
ROUTINGS = st.none() | KEYS
BATCHES = st.dictionaries(KEYS, st.tuples(st.integers(0, 2**63 - 1), DOCUMENTS, ROUTINGS), min_size=1, max_size=12)


def encoded(batch: Batch) -> pa.LargeStringArray:
    admitted = admit_operations(table(*((key, *rest) for key, rest in batch.items())))
    assert admitted.rejected == ()
    return bulk.encode_operations(admitted.ids, admitted.versions, admitted.documents, admitted.routings)


def decoded(body: bytes) -> dict[str, tuple[int, Any, str | None]]:
    """Read NDJSON as a server does: by line feeds, an action and for `index` a document."""
    assert body.endswith(b"\n")
    lines = iter(body[:-1].split(b"\n"))
    documents: dict[str, tuple[int, Any, str | None]] = {}
    for line in lines:
        ((action, meta),) = json.loads(line).items()
        assert meta["version_type"] == "external_gte"
        document = json.loads(next(lines)) if action == "index" else None
        documents[meta["_id"]] = (meta["version"], document, meta.get("routing"))
    return documents


@given(BATCHES)
def test_lines_read_back_as_the_operations(batch: Batch) -> None:
    lines = encoded(batch)
    whole = bulk.build_bulk_body(lines, np.arange(len(batch)))
    assert decoded(bytes(whole)) == {
        key: (version, None if text is None else json.loads(text), routing)
        for key, (version, text, routing) in batch.items()
    }


@given(BATCHES, st.data())
def test_any_selection_is_a_valid_body(batch: Batch, data: st.DataObject) -> None:
    lines = encoded(batch)
    rows = data.draw(st.lists(st.integers(0, len(batch) - 1), min_size=1, unique=True).map(sorted))
    body = bytes(bulk.build_bulk_body(lines, np.array(rows)))
    keys = list(batch)
    assert set(decoded(body)) == {keys[row] for row in rows}
    assert len(body) == bulk.operation_sizes(lines)[rows].sum()


@given(st.lists(st.integers(1, 100), min_size=1), st.integers(1, 300))
def test_a_cut_is_the_largest_that_fits(sizes: list[int], limit: int) -> None:
    count = bulk.count_fitting(np.array(sizes), limit)
    assert count == 1 or sum(sizes[:count]) <= limit
    assert count == len(sizes) or sum(sizes[: count + 1]) > limit


def test_neighbours_are_not_copied() -> None:
    lines = encoded({str(row): (1, "{}", None) for row in range(100)})
    body = bulk.build_bulk_body(lines, np.arange(10, 60))
    start = np.frombuffer(lines.buffers()[2], np.uint8).ctypes.data
    assert start < np.frombuffer(body, np.uint8).ctypes.data < start + lines.nbytes
