"""The cursor of a query is renewed while the query lives, and not longer."""

import gc
import pickle
import threading

import pytest

from penstock.errors import ServerUnavailableError
from penstock.spark import cursor_renewal
from penstock.spark.cursor_renewal import CursorRenewal
from penstock.testing import poll_until

LONG_S = 60.0
NAME = "penstock-cursor-renewal"


class Query:
    """Counts its renewals; the server does not answer some of them."""

    def __init__(self) -> None:
        self.renewals = 0

    def renew(self) -> float:
        self.renewals += 1
        if self.renewals % 3 == 0:
            raise ServerUnavailableError("no server answers")
        return 0.03


def renewing() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == NAME]


def test_a_cursor_is_renewed_as_long_as_its_query_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursor_renewal, "_RETRY_S", 0.01)
    renewal = pickle.loads(pickle.dumps(CursorRenewal()))  # noqa: S301 - our own
    queries = [Query()]
    for _ in range(3):  # with each batch
        renewal.start(queries[0].renew)
    assert poll_until(lambda: queries[0].renewals > 10, LONG_S)
    assert renewing() == [NAME]
    queries.clear()
    gc.collect()
    assert poll_until(lambda: not renewing(), LONG_S)
