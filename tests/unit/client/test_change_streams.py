"""A stream of changes that breaks: where it resumes, what is left out because it came already, and what is acked."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.rows.fields import CHANGE_FIELDS
from penstock.client.changes import ChangeStream, ClientSubscription
from penstock.errors import MetaError, NotRunningError, PenstockError, ProtocolError, ServerUnavailableError

SCHEMA = pa.schema([pa.field("id", pa.int64()), *CHANGE_FIELDS])
GONE = ServerUnavailableError("gone")
RETRY_TIMEOUT_S = 30.0


class Chunk:
    """Rows, by the number of their event and their position in it, and what the server says with them."""

    def __init__(self, rows: list[tuple[int, int]], **answer: Any) -> None:
        columns = {name: pa.nulls(len(rows), SCHEMA.field(name).type) for name in SCHEMA.names}
        columns["id"] = pa.array([100 * seq + row for seq, row in rows], pa.int64())
        columns["_seq"] = pa.array([seq for seq, _ in rows], SCHEMA.field("_seq").type)
        columns["_row"] = pa.array([row for _, row in rows], SCHEMA.field("_row").type)
        self.data = pa.RecordBatch.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)
        self.app_metadata = pa.py_buffer(json.dumps(answer).encode())


class RecordedLink:
    """Gives chunks and errors in turn, as a link does, and keeps what was asked."""

    def __init__(self, *steps: Chunk | PenstockError) -> None:
        self.steps = list(steps)
        self.tickets: list[dict[str, Any]] = []
        self.actions: list[tuple[str, Mapping[str, Any]]] = []
        self.refusal: PenstockError | None = None
        self.schema = SCHEMA

    def open_stream(self, ticket: bytes, **_: Any) -> "RecordedLink":
        self.tickets.append(json.loads(ticket))
        return self

    def read_chunk(self) -> Chunk:
        if not self.steps:
            raise StopIteration
        step = self.steps.pop(0)
        if isinstance(step, PenstockError):
            raise step
        return step

    def cancel(self) -> None:
        self.steps.clear()

    def call_action(self, name: str, request: Mapping[str, Any], **_: Any) -> None:
        self.actions.append((name, request))
        if self.refusal is not None:
            raise self.refusal


def changes_of(link: RecordedLink, start: Any = "binlog.000001:4", **options: Any) -> ChangeStream:
    return ChangeStream(link, {"destination": "shop", "start": start, **options}, RETRY_TIMEOUT_S)  # type: ignore[arg-type]


def subscribed(link: RecordedLink) -> ClientSubscription:
    return ClientSubscription(link, {"destination": "shop", "client": 7}, RETRY_TIMEOUT_S)  # type: ignore[arg-type]


def ids(batches: Iterator[pa.RecordBatch]) -> list[int]:
    return [number for batch in batches for number in batch.column("id").to_pylist()]


def test_it_resumes_at_the_last_position_that_the_server_has_said() -> None:
    link = RecordedLink(
        Chunk([(1, 0)], position="p1"), Chunk([], position="p2"), GONE, Chunk([(2, 0)], position="p3"), GONE, GONE
    )
    changes = changes_of(link)
    assert ids(iter(changes)) == [100, 200]
    assert [ticket["start"] for ticket in link.tickets] == ["binlog.000001:4", "p2", "p3", "p3"]
    assert (changes.position, changes.schema) == ("p3", SCHEMA)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), unique=True, max_size=30), st.data())
def test_what_came_already_is_left_out_wherever_a_stream_breaks(
    rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    rows = sorted(rows)
    steps, at, breaks = list[Any](), 0, data.draw(st.integers(0, 5))
    while at < len(rows):
        end = data.draw(st.integers(at + 1, len(rows)))
        steps.append(Chunk(rows[at:end], position=f"p{end}"))
        at = end
        if at < len(rows) and breaks:
            steps.append(GONE)
            at, breaks = data.draw(st.integers(0, at)), breaks - 1
    assert ids(iter(changes_of(RecordedLink(*steps)))) == [100 * seq + row for seq, row in rows]


@pytest.mark.parametrize("start", ["latest", "stored", "earliest", "time:-10m"])
def test_a_start_that_would_mean_another_position_is_not_asked_for_again(start: str) -> None:
    with pytest.raises(ServerUnavailableError, match="gone"):
        ids(iter(changes_of(RecordedLink(GONE), start)))
    link = RecordedLink(Chunk([], position="p1"), GONE, Chunk([(1, 0)]))
    assert ids(iter(changes_of(link, start))) == [100], "the server has said where that is"


def test_an_end_that_would_mean_another_position_is_not_asked_for_again() -> None:
    link = RecordedLink(Chunk([(1, 0)], position="p1"), GONE, Chunk([(2, 0)]))
    with pytest.raises(ServerUnavailableError, match="gone"):
        ids(iter(changes_of(link, end="latest")))


def test_what_will_not_be_better_is_raised_at_once() -> None:
    link = RecordedLink(Chunk([(1, 0)], position="p1"), ProtocolError("wrong"), Chunk([(2, 0)]))
    with pytest.raises(ProtocolError, match="wrong"):
        ids(iter(changes_of(link)))
    assert len(link.tickets) == 1


def test_retries_have_an_end() -> None:
    changes = ChangeStream(RecordedLink(*[GONE] * 9), {"destination": "shop", "start": "a:4"}, 0)  # type: ignore[arg-type]
    with pytest.raises(ServerUnavailableError, match="gone"):
        ids(iter(changes))


def test_one_that_is_closed_ends() -> None:
    changes = changes_of(RecordedLink(Chunk([(1, 0)]), Chunk([(2, 0)])))
    batches = iter(changes)
    assert next(batches).num_rows == 1
    changes.close()
    assert list(batches) == []


# -- subscriptions


def test_an_ack_is_of_the_last_batch_of_which_all_was_read() -> None:
    link = RecordedLink(Chunk([(1, 0)]), Chunk([(1, 1)], batch=5), Chunk([(2, 0)]))
    subscription = subscribed(link)
    batches = iter(subscription)
    next(batches)
    subscription.ack()
    assert link.actions == [], "a part of it is still to come"
    next(batches)
    subscription.ack()
    subscription.ack()
    assert link.actions == [("ack", {"destination": "shop", "client": 7, "batch": 5})]


def test_a_batch_without_rows_is_acked_by_itself_unless_rows_wait() -> None:
    link = RecordedLink(Chunk([], batch=1), Chunk([(1, 0)], batch=2), Chunk([], batch=3))
    subscription = subscribed(link)
    assert ids(iter(subscription)) == [100]
    assert [request["batch"] for _, request in link.actions] == [1]
    subscription.ack()
    assert [request["batch"] for _, request in link.actions] == [1, 3]


def test_after_a_break_all_that_was_not_acked_is_redelivered() -> None:
    link = RecordedLink(Chunk([(1, 0)], batch=1), Chunk([(2, 0)], batch=2), GONE, Chunk([(2, 0), (2, 1)], batch=9))
    subscription = subscribed(link)
    batches = iter(subscription)
    assert next(batches).column("id").to_pylist() == [100]
    subscription.ack()
    assert next(batches).column("id").to_pylist() == [200]
    assert next(batches).column("id").to_pylist() == [200, 201]
    subscription.ack()
    assert [request["batch"] for _, request in link.actions] == [1, 9]
    assert link.tickets == [{"destination": "shop", "client": 7}] * 2


def test_a_rollback_begins_again_at_the_last_ack() -> None:
    link = RecordedLink(Chunk([(1, 0)], batch=1))
    subscription = subscribed(link)
    next(iter(subscription))
    subscription.rollback()
    subscription.ack()
    assert link.actions == [], "what was rolled back is not acked"
    link.steps = [Chunk([(1, 0)], batch=2)]
    assert ids(iter(subscription)) == [100]


@pytest.mark.parametrize("refusal", [GONE, NotRunningError("another"), MetaError("no batch 1")])
def test_what_cannot_be_acked_because_the_server_went_is_no_error(
    refusal: PenstockError, caplog: pytest.LogCaptureFixture
) -> None:
    link = RecordedLink(Chunk([(1, 0)], batch=1))
    subscription = subscribed(link)
    next(iter(subscription))
    link.refusal = refusal
    subscription.ack()
    assert "ack failed destination=shop batch=1" in caplog.text
    assert "the batch will be redelivered" in caplog.text
    link.refusal = None
    subscription.ack()
    assert len(link.actions) == 1


def test_an_ack_that_is_refused_for_good_is_raised() -> None:
    link = RecordedLink(Chunk([(1, 0)], batch=1))
    subscription = subscribed(link)
    next(iter(subscription))
    link.refusal = ProtocolError("no number")
    with pytest.raises(ProtocolError, match="no number"):
        subscription.ack()
