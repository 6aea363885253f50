"""Of several processes that could write to an index, the newest one may: an older one is refused."""

import json
from pathlib import Path

import pytest

from penstock.errors import FencedError
from penstock.search import FieldKind, WriteReport
from penstock.search.delivery import HttpResponse, RetryClock
from penstock.search.embedded import EmbeddedIndex
from penstock.search.http import HttpIndex
from penstock.search.writer_term import WriterTerm
from tests.support.search_contract import CHAIR, FIELDS, LAMP, contents, table

OK = HttpResponse(200, b'{"errors":false}')


class Lease:
    """The right to write, which the test ends: at once, or after so many questions."""

    def __init__(self, questions: int = 10**6) -> None:
        self.questions = questions

    def require(self) -> None:
        self.questions -= 1
        if self.questions < 0:
            raise FencedError("the term has ended")


class Server:
    """Remembers a term, as an index on a search server does; what is sent in bulk is counted."""

    where = "http://server"

    def __init__(self, term: int | None, bulk: HttpResponse = OK) -> None:
        self.term, self.bulk, self.requests = term, bulk, list[str]()

    def request(self, method: str, path: str, body: bytes | None = None, *_: str, **__: bool) -> HttpResponse:
        self.requests.append(f"{method} {path.partition('?')[0]}")
        if method == "PUT":
            assert body is not None
            self.term = json.loads(body)["_meta"]["penstock"]["terms"]["shop"]
        if method != "GET":
            return self.bulk if path.startswith("/things/_bulk") else OK
        if self.term is None:
            return HttpResponse(404, b"{}")
        meta = {"_meta": {"penstock": {"terms": {"shop": self.term}}}} if self.term else {}
        is_filtered = "filter_path" in path and not meta
        return HttpResponse(200, json.dumps({} if is_filtered else {"things": {"mappings": meta}}).encode())

    def close(self) -> None: ...


def open_index(server: Server, number: int, lease: Lease | None = None) -> HttpIndex:
    retries = RetryClock(clock=lambda: 0.0, sleep=lambda _: None, random=lambda: 0.5)
    return HttpIndex(server, "things", retry_clock=retries, term=WriterTerm("shop", number, (lease or Lease()).require))


def test_a_search_server_is_asked_before_each_bulk_request() -> None:
    server = Server(term=4)
    index = open_index(server, 4)
    assert index.write(table(("1", 1, LAMP))) == WriteReport(written=1)
    assert server.requests == ["GET /things/_mapping", "POST /things/_bulk"]
    server.term = 5
    with pytest.raises(FencedError, match=r"written in term 5 of pipeline 'shop', and this is term 4: another process"):
        index.write(table(("2", 1, LAMP)))
    assert server.requests.count("POST /things/_bulk") == 1


@pytest.mark.parametrize("term", [0, 3])
def test_a_term_that_the_index_forgot_is_claimed_again(term: int) -> None:
    server = Server(term)
    open_index(server, 4).write(table(("1", 1, LAMP)))
    assert server.term == 4
    assert server.requests[-1] == "POST /things/_bulk"


def test_a_process_that_was_frozen_after_it_asked_does_not_send() -> None:
    server = Server(term=4)
    with pytest.raises(FencedError, match="has ended"):
        open_index(server, 4, Lease(questions=0)).write(table(("1", 1, LAMP)))
    assert server.requests == ["GET /things/_mapping"]


def test_a_retry_is_a_request_like_any_other() -> None:
    server = Server(term=4, bulk=HttpResponse(429, b"{}"))
    with pytest.raises(FencedError, match="has ended"):
        open_index(server, 4, Lease(questions=2)).write(table(("1", 1, LAMP)))
    assert server.requests.count("POST /things/_bulk") == 2


def test_a_missing_index_is_missing() -> None:
    server = Server(term=None)
    with pytest.raises(Exception, match="no such index"):
        open_index(server, 4).write(table(("1", 1, LAMP)))


def test_an_embedded_index_remembers_the_newest_term_and_the_epoch(tmp_path: Path) -> None:
    def open_in_term(number: int, lease: Lease | None = None) -> EmbeddedIndex:
        return EmbeddedIndex.open(tmp_path, term=WriterTerm("shop", number, (lease or Lease()).require))

    with open_in_term(4) as index:
        index.prepare(FIELDS)
        index.claim_epoch(2)
        index.write(table(("1", 1, LAMP)))
    with open_in_term(3) as index, pytest.raises(FencedError, match="term 4 of pipeline 'shop', and this is term 3"):
        index.prepare(FIELDS)
    with EmbeddedIndex.open(tmp_path, term=WriterTerm("other", 1, lambda: None)) as index:
        index.prepare({"name": FieldKind.TEXT})
    lease = Lease()
    with open_in_term(5, lease) as index:
        index.prepare(FIELDS)
        index.claim_epoch(2)
        lease.questions = 0  # it ends while a write is made
        with pytest.raises(FencedError, match="has ended"):
            index.write(table(("2", 1, CHAIR)))
        assert contents(index) == {"1": (1, LAMP)}
        lease.questions = 1
        assert index.write(table(("2", 1, CHAIR))) == WriteReport(written=1)
