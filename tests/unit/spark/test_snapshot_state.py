"""The progress of snapshots in offsets: what is read next, and of which rows the changes are delivered."""

import json
from typing import Any

import pyarrow as pa
import pytest

from penstock.binlog.rows.fields import CHANGE_FIELDS
from penstock.errors import ConfigurationError
from penstock.model import TableName
from penstock.spark.delivered_rows import DeliveredRows
from penstock.spark.options import ReadOptions
from penstock.spark.snapshot_state import PendingTable, SnapshotState, TableState, known_tables

A, B = TableName("s", "a"), TableName("s", "b")


def _plan(*limits: list[str] | None) -> dict[str, Any]:
    return {
        "chunks": [{"until": limit, "rows": 10} for limit in limits],
        "key": ["id"],
        "key_description": "id",
        "estimated_rows": 40,
    }


def _round_trip(state: SnapshotState) -> SnapshotState:
    offset = json.loads(json.dumps(state.to_json()))
    assert offset == state.to_json(), "Spark compares offsets with what it has read of them"
    return SnapshotState.from_offset(offset)


def test_a_table_is_delivered_chunk_by_chunk() -> None:
    state = SnapshotState.begin([A], {})
    assert _round_trip(state) == state
    assert state.pending([A], [A]) == {A: PendingTable((), None)}
    first = SnapshotState({A: state.tables[A].with_chunks(_plan(["5"], ["9"]))})
    assert first.tables[A].bounds == [(None, ("5",)), (("5",), ("9",))]
    assert _round_trip(first) == first
    assert first.to_json()["snapshot"]["s.a"]["percent"] == 50.0
    assert first.pending([A], [A]) == {A: PendingTable(("id",), ("9",))}
    paused = first.advance([A], [A], {})
    assert paused.tables[A].with_chunks(_plan()) is paused.tables[A]
    assert paused.tables[A].bounds == []
    assert paused.pending([A], [A]) == first.pending([A], [A])
    last = SnapshotState({A: paused.tables[A].with_chunks(_plan(None))})
    assert last.tables[A].bounds == [(("9",), None)]
    assert last.to_json()["snapshot"]["s.a"]["percent"] == 100.0
    assert last.pending([A], [A]) == {}
    assert _round_trip(last).advance([A], [A], {}).to_json() == {}


def test_a_table_that_was_added_is_delivered_while_the_others_are_followed() -> None:
    state = SnapshotState()
    assert state.pending([A, B], known_tables({"tables": "s.a"})) == {B: PendingTable((), None)}
    assert state.advance([A, B], known_tables({"tables": "s.a"}), {}).tables == {B: TableState()}


def test_a_table_that_was_added_is_not_read_again_for_a_request_of_before() -> None:
    added = SnapshotState().advance([A, B], [A], {"s.b": 4})
    assert added.tables == {B: TableState()}
    done = SnapshotState({B: added.tables[B].with_chunks(_plan(None))}, added.requests)
    assert _round_trip(done).advance([A, B], [A, B], {"s.b": 4}).tables == {}
    assert done.advance([A, B], [A, B], {"s.b": 5}).tables == {B: TableState(is_repeated=True)}


def test_a_table_is_read_again_once_for_each_request_and_its_changes_are_all_delivered() -> None:
    state = SnapshotState(requests={"s.a": 5})
    assert state.advance([A], [A], {"s.a": 5}).tables == {}
    again = state.advance([A], [A], {"s.a": 6})
    assert again.tables == {A: TableState(is_repeated=True)}
    assert again.pending([A], [A]) == {}
    reading = SnapshotState({A: again.tables[A].with_chunks(_plan(["5"]))}, again.requests)
    assert reading.pending([A], [A]) == {}
    assert reading.advance([A], [A], {"s.a": 6}).tables[A].done == ("5",)
    restarted = reading.advance([A], [A], {"s.a": 7}).tables[A].with_chunks(_plan(["3"]))
    assert restarted.bounds == [(None, ("3",))], "it begins again"
    first = SnapshotState({A: TableState(done=("5",), key=("id",))})
    heard = first.advance([A], [A], {"s.a": 9})
    assert heard.tables[A].done == ("5",), "it is being read for the first time"
    done = SnapshotState({A: heard.tables[A].with_chunks(_plan(None))}, heard.requests)
    assert done.advance([A], [A], {"s.a": 9}).tables == {A: TableState(is_repeated=True)}, "and then again"


def test_a_table_that_is_not_wanted_any_more_is_forgotten() -> None:
    assert SnapshotState.begin([A, B], {}).advance([B], [A, B], {}).tables == {B: TableState()}


_FIELDS = pa.schema([pa.field("id", pa.int32()), *CHANGE_FIELDS])
CHANGES = [
    ("insert", 1), ("insert", 9), ("update_preimage", 2), ("update_postimage", 8), ("update_preimage", 7),
    ("update_postimage", 3), ("update_preimage", 4), ("update_postimage", 4), ("delete", 6), ("delete", 5),
]  # fmt: skip


def _select(done: tuple[str, ...] | None) -> list[tuple[str, int]]:
    rows = [{"id": number, "_change_type": kind, "_changed": ["id"]} for kind, number in CHANGES]
    batch = pa.RecordBatch.from_pylist(rows, _FIELDS)
    kept = DeliveredRows({A: PendingTable(("id",), done)}, lambda *_: []).select(A, batch)
    for row in kept.to_pylist():
        if row["_change_type"] in {"insert", "delete"} and row["id"] in {2, 3}:
            assert row["_changed"] is None
    return [(row["_change_type"], row["id"]) for row in kept.to_pylist()]


def test_changes_of_rows_that_were_not_delivered_are_left_out() -> None:
    assert _select(None) == []
    assert _select(("9",)) == CHANGES
    assert _select(("5",)) == [
        ("insert", 1), ("delete", 2), ("insert", 3), ("update_preimage", 4), ("update_postimage", 4), ("delete", 5),
    ]  # fmt: skip


def test_other_tables_are_not_asked_about() -> None:
    batch = pa.RecordBatch.from_pylist([{"id": 1, "_change_type": "insert"}], _FIELDS)
    assert DeliveredRows({A: PendingTable((), None)}, lambda *_: []).select(B, batch) is batch


def test_a_filter_has_no_snapshot() -> None:
    with pytest.raises(ConfigurationError, match="startingPosition=snapshot goes with"):
        ReadOptions.of({"server": "127.0.0.1:1", "filter": "s\\..*", "startingPosition": "snapshot"})
