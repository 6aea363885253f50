"""The HTTP index before a server that answers by script."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from penstock.errors import SinkError, SinkUnavailableError
from penstock.search import FieldKind, WriteReport
from penstock.search.delivery import HttpResponse, RetryClock
from penstock.search.http import HttpIndex
from tests.support.search_contract import LAMP, table


class Server:
    """Gives the scripted answers of each kind of request, the last one for ever."""

    where = "http://server"

    def __init__(self, **answers: list[HttpResponse | Exception]) -> None:
        self.answers = answers
        self.requests: list[tuple[str, str]] = []
        self.actions: list[list[str]] = []

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "", *, is_repeatable: bool = True
    ) -> HttpResponse:
        self.requests.append((method, path.partition("?")[0]))
        assert is_repeatable == ("scroll" not in path.partition("?")[0])
        if content_type == "application/x-ndjson":
            lines = [json.loads(line) for line in bytes(body).splitlines()]
            self.actions.append([action for line in lines for action in line if action in ("index", "delete")])
        script = self.answers[method]
        answer = script.pop(0) if len(script) > 1 else script[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None: ...


OK = HttpResponse(200, b'{"errors":false}')
DOWN = SinkUnavailableError("connection refused")


def open_index(server: Server) -> HttpIndex:
    return HttpIndex(
        server, "things", retry_clock=RetryClock(clock=lambda: 0.0, sleep=lambda _: None, random=lambda: 0.5)
    )


def test_a_server_that_comes_back_gets_the_batch() -> None:
    server = Server(HEAD=[DOWN, HttpResponse(503, b""), OK], POST=[DOWN, HttpResponse(429, b""), OK])
    assert open_index(server).write(table(("1", 1, LAMP))) == WriteReport(written=1)
    assert server.requests.count(("POST", "/things/_bulk")) == 3


def test_documents_of_a_moved_id_are_sent_when_its_deletes_are_over() -> None:
    """A delete that is sent again must not come after the document: both may be for the same shard."""
    busy = HttpResponse(200, b'{"errors":true,"items":[{"delete":{"status":429,"error":{"type":"busy"}}}]}')
    server = Server(HEAD=[OK], POST=[busy, OK])
    batch = table(("1", 2, LAMP, "new"), ("1", 2, None, "old"), ("2", 2, LAMP))
    assert open_index(server).write(batch) == WriteReport(written=2, deleted=1)
    assert server.actions == [["delete"], ["delete"], ["index", "index"]]


def test_a_batch_of_rejected_operations_is_not_sent() -> None:
    server = Server()
    report = open_index(server).write(table(("", 1, LAMP), ("1", 1, "[]")))
    assert [rejection.id for rejection in report.rejected] == ["", "1"]
    assert server.requests == []


@pytest.mark.parametrize(
    "question",
    [
        lambda index: index.count(),
        lambda index: index.refresh(),
        lambda index: index.get("1"),
        lambda index: index.search("x"),
        lambda index: index.documents(),
        lambda index: index.prepare({"name": FieldKind.TEXT}),
    ],
)
@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (DOWN, SinkUnavailableError, "refused"),
        (HttpResponse(503, b""), SinkUnavailableError, "index 'things' at http://server cannot answer now: HTTP 503"),
        (
            HttpResponse(403, b'{"error":{"type":"security_exception","reason":"no"}}'),
            SinkError,
            "403 security_exception",
        ),
    ],
)
def test_other_calls_raise_at_once(
    question: Callable[[HttpIndex], object], answer: HttpResponse | Exception, error: type[SinkError], message: str
) -> None:
    index = open_index(Server(GET=[answer], POST=[answer]))
    with pytest.raises(error, match=message) as caught:
        question(index)
    assert caught.type is error


def test_an_index_that_somebody_else_made_meanwhile_is_checked() -> None:
    mapping = HttpResponse(200, b'{"things":{"mappings":{"properties":{"name":{"type":"text"}}}}}')
    settings = HttpResponse(200, b'{"things":{"settings":{"index.gc_deletes":"3h"}}}')
    exists = HttpResponse(400, b'{"error":{"type":"resource_already_exists_exception"}}')
    server = Server(GET=[HttpResponse(404, b""), mapping, settings], PUT=[exists])
    open_index(server).prepare({"name": FieldKind.TEXT})
    assert [method for method, _ in server.requests] == ["GET", "PUT", "GET", "GET"]


def test_an_epoch_that_somebody_else_raises_meanwhile_is_noticed() -> None:
    def mapping(epoch: int) -> HttpResponse:
        return HttpResponse(
            200, json.dumps({"things": {"mappings": {"_meta": {"penstock": {"epoch": epoch}}}}}).encode()
        )

    server = Server(GET=[mapping(1), mapping(3)], PUT=[HttpResponse(200, b"{}")])
    with pytest.raises(SinkError, match="written with epoch 3"):
        open_index(server).claim_epoch(2)
    assert [method for method, _ in server.requests] == ["GET", "PUT", "GET"]
