"""Sending to a busy server: only what must be is sent again, later and in smaller pieces, and not for ever."""

import json
import logging
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import SinkError, SinkUnavailableError
from penstock.search import bulk
from penstock.search.bulk import BulkAnswer, BulkOutcome
from penstock.search.delivery import BulkSender, HttpResponse, RetryClock, RetryPolicy

Script = Callable[[list[str]], HttpResponse | Exception]


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.delays: list[float] = []

    def sleep(self, delay: float) -> None:
        self.delays.append(delay)
        self.now += delay

    def retry_clock(self, chance: float = 0.5) -> RetryClock:
        return RetryClock(clock=lambda: self.now, sleep=self.sleep, random=lambda: chance)


class Server:
    """Answers by a script; without one, takes everything."""

    def __init__(self, *script: Script) -> None:
        self.script = list(script)
        self.requests: list[list[str]] = []

    def __call__(self, body: memoryview, /) -> HttpResponse:
        ids = [json.loads(line)["index"]["_id"] for line in bytes(body).splitlines()[::2]]
        self.requests.append(ids)
        answer = (self.script.pop(0) if self.script else done)(ids)
        if isinstance(answer, Exception):
            raise answer
        return answer


def lines(count: int, size: int = 0) -> pa.LargeStringArray:
    documents = pa.array([json.dumps({"x": "y" * size})] * count)
    return bulk.encode_operations(pa.array([f"{row:x}" for row in range(count)]), np.zeros(count, np.int64), documents)


def done(_ids: list[str]) -> HttpResponse:
    return HttpResponse(200, b'{"errors":false}')


def items(*statuses: tuple[int, str]) -> Script:
    """An answer with one status and error type per operation."""

    def answer(ids: list[str]) -> HttpResponse:
        assert len(ids) == len(statuses)
        items: list[dict[str, Any]] = [
            {"index": {"status": status} | ({"error": {"type": kind, "reason": "because"}} if kind else {})}
            for status, kind in statuses
        ]
        return HttpResponse(200, json.dumps({"errors": True, "items": items}).encode())

    return answer


def whole(status: int, content: bytes = b"") -> Script:
    return lambda _ids: HttpResponse(status, content)


def broken(_ids: list[str]) -> SinkUnavailableError:
    return SinkUnavailableError("connection refused")


OK, BUSY, STALE = (200, ""), (429, "es_rejected_execution_exception"), (409, "version_conflict_engine_exception")
BAD = (400, "mapper_parsing_exception")


def deliver(server: Server, what: pa.LargeStringArray, time: Time | None = None, **policy: Any) -> BulkAnswer:
    sender = BulkSender(server, "index 'things'", RetryPolicy(**policy), (time or Time()).retry_clock())
    return sender.deliver_operations(what)


def test_one_request_is_enough_when_all_goes_well() -> None:
    server = Server()
    assert deliver(server, lines(4)).outcomes.tolist() == [BulkOutcome.DONE] * 4
    assert server.requests == [["0", "1", "2", "3"]]


def test_a_batch_is_cut_by_bytes() -> None:
    server = Server()
    what = lines(10, size=900)
    answer = deliver(server, what, bulk_bytes=int(bulk.operation_sizes(what)[:3].sum()))
    assert [len(request) for request in server.requests] == [3, 3, 3, 1]
    assert answer.outcomes.tolist() == [BulkOutcome.DONE] * 10


def test_only_the_failed_items_are_sent_again() -> None:
    server, time = Server(items(OK, BUSY, STALE, BAD, BUSY), items(BUSY, OK)), Time()
    answer = deliver(server, lines(5), time)
    assert server.requests == [["0", "1", "2", "3", "4"], ["1", "4"], ["1"]]
    assert answer.outcomes.tolist() == [
        BulkOutcome.DONE,
        BulkOutcome.DONE,
        BulkOutcome.STALE,
        BulkOutcome.REJECTED,
        BulkOutcome.DONE,
    ]
    assert {row: failure.type for row, failure in answer.failures.items()} == {3: BAD[1]}
    # Something was taken each time, so the delay did not grow.
    assert time.delays == [0.1, 0.1]


@pytest.mark.parametrize("trouble", [broken, whole(429), whole(502), whole(503, b'{"error":"busy"}'), whole(504)])
def test_delays_double_up_to_a_limit(trouble: Script) -> None:
    server, time = Server(*[trouble] * 6), Time()
    answer = deliver(server, lines(2), time, longest_delay_s=1.0)
    assert answer.outcomes.tolist() == [BulkOutcome.DONE] * 2
    assert time.delays == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_delays_are_spread_by_chance() -> None:
    time = Time()
    BulkSender(Server(broken), "here", RetryPolicy(), time.retry_clock(chance=0.0)).deliver_operations(lines(1))
    assert time.delays == [0.05]


def test_pieces_are_halved_and_grow_again() -> None:
    size = 100_000
    server = Server(whole(429), whole(429))
    what = lines(16, size)
    deliver(server, what, bulk_bytes=int(bulk.operation_sizes(what).sum()))
    assert [len(request) for request in server.requests] == [16, 8, 4, 8, 4]


def test_a_sender_remembers_what_the_server_took() -> None:
    server = Server(whole(413))
    sender = BulkSender(server, "here", RetryPolicy(), Time().retry_clock())
    sender.deliver_operations(lines(8, 1000))
    sender.deliver_operations(lines(8, 1000))
    assert [len(request) for request in server.requests] == [8, 4, 4, 4, 4]


def test_a_document_larger_than_a_request_is_rejected() -> None:
    server = Server(whole(413), whole(413))
    answer = deliver(server, lines(2, 1000))
    assert server.requests == [["0", "1"], ["0"], ["1"]]
    assert answer.outcomes.tolist() == [BulkOutcome.REJECTED, BulkOutcome.DONE]
    assert "more than the server takes" in str(answer.failures[0])


def test_the_deadline_counts_from_the_last_progress() -> None:
    busy = items(BUSY, BUSY)
    server, time = Server(busy, busy, items(OK, BUSY), *[items(BUSY)] * 99), Time()
    with pytest.raises(
        SinkUnavailableError, match=r"index 'things' has taken nothing for 5 s: HTTP 429 .*\. 1 of 2 op"
    ):
        deliver(server, lines(2), time, deadline_s=5.0)
    assert sum(time.delays[2:]) == pytest.approx(5.0)
    assert server.requests[-1] == ["1"]


def test_without_retries_nothing_is_sent_twice() -> None:
    server = Server(broken)
    with pytest.raises(SinkUnavailableError, match="connection refused"):
        deliver(server, lines(1), deadline_s=0.0)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (items((403, "cluster_block_exception"), OK), r"HTTP 403 cluster_block_exception: because\. Remove the block"),
        (items(OK, (404, "index_not_found_exception")), "index_not_found_exception: because. Create the index"),
        (items(BUSY, (400, "index_closed_exception")), "Open the index"),
        (whole(401, b'{"error":{"type":"security_exception","reason":"no"}}'), "Grant the user of the URL the right"),
        (whole(400, b'{"error":{"type":"x_exception","reason":"Malformed"}}'), "HTTP 400 x_exception: Malformed"),
        (whole(500, b"oops"), "HTTP 500 oops"),
        (whole(302), "HTTP 302"),
    ],
)
def test_what_no_retry_can_repair_stops_at_once(trouble: Script, message: str) -> None:
    server, time = Server(trouble), Time()
    with pytest.raises(SinkError, match=message) as caught:
        deliver(server, lines(2), time)
    assert not caught.value.transient
    assert (len(server.requests), time.delays) == (1, [])


def test_a_delay_is_logged_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        deliver(Server(broken), lines(1))
    assert "index 'things'" in caplog.text
    assert "connection refused" in caplog.text


def test_without_a_deadline_a_server_is_waited_for_in_few_words(caplog: pytest.LogCaptureFixture) -> None:
    server, time = Server(*[broken] * 100), Time()
    with caplog.at_level(logging.INFO):
        answer = deliver(server, lines(1), time, deadline_s=None)
    assert answer.outcomes.tolist() == [BulkOutcome.DONE]
    assert len(server.requests) == 101
    waited_s = sum(time.delays)
    assert waited_s > 900
    failed = [record for record in caplog.records if record.getMessage().startswith("bulk request failed, retry")]
    assert len(failed) <= waited_s / 10 + 1
    assert "connection refused" in failed[0].getMessage()
    (again,) = [record for record in caplog.records if record not in failed]
    assert again.getMessage() == f"search index accepts writes again index=\"index 'things'\" waited_s={waited_s:.0f}"


def test_lines_about_a_busy_server_are_ten_seconds_apart(caplog: pytest.LogCaptureFixture) -> None:
    """Also when it takes some of each request, and over several deliveries."""
    time = Time()
    server = Server(*[items(OK, BUSY), items(BUSY), done] * 60)
    sender = BulkSender(server, "here", RetryPolicy(), time.retry_clock())
    with caplog.at_level(logging.INFO):
        for _ in range(60):
            sender.deliver_operations(lines(2))
    assert sum(time.delays) > 10
    assert len(caplog.records) == 1 + int(sum(time.delays[:-1]) // 10)


def stoppable(server: Server, stopped: threading.Event, delay_s: float) -> BulkSender:
    policy = RetryPolicy(deadline_s=None, first_delay_s=delay_s, longest_delay_s=delay_s)
    return BulkSender(server, "here", policy, RetryClock.stopped_by(stopped))


@pytest.mark.parametrize("delay_s", [0.01, 3600.0])
def test_a_stop_ends_the_wait(delay_s: float) -> None:
    stopped = threading.Event()
    sender = stoppable(Server(*[broken] * 10**5), stopped, delay_s)
    timer = threading.Timer(0.1, stopped.set)
    timer.start()
    with pytest.raises(SinkUnavailableError, match=r"until stopped.*refused.*1 of 1 operations") as caught:
        sender.deliver_operations(lines(1))
    assert caught.value.transient
    timer.join()


def test_a_stop_leaves_a_write_that_needs_no_wait() -> None:
    stopped = threading.Event()
    stopped.set()
    assert stoppable(Server(), stopped, 1.0).deliver_operations(lines(1)).outcomes.tolist() == [BulkOutcome.DONE]
    server = Server(broken)
    with pytest.raises(SinkUnavailableError, match="until stopped"):
        stoppable(server, stopped, 3600.0).deliver_operations(lines(1))
    assert len(server.requests) == 1
