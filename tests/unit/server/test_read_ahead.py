"""What a stream sends is made in a thread of its own: in order, not far ahead, and no longer than somebody reads it."""

import threading
from collections.abc import Iterator

import pytest

from penstock.server.flight.read_ahead import read_ahead
from penstock.testing import poll_until

WAIT_S = 60.0


def test_items_come_in_their_order_and_the_error_after_them() -> None:
    def items() -> Iterator[int]:
        yield from range(5)
        raise LookupError("no more")

    got = list[int | None]()
    with pytest.raises(LookupError, match="no more"):
        got.extend(read_ahead(items(), WAIT_S))
    assert got == [0, 1, 2, 3, 4]
    assert list(read_ahead(iter([1, 2]), WAIT_S)) == [1, 2]


def test_while_an_item_is_being_made_there_is_none() -> None:
    is_allowed = threading.Event()

    def items() -> Iterator[str]:
        assert is_allowed.wait(WAIT_S)
        yield "late"

    ready = read_ahead(items(), 0.01)
    assert [next(ready), next(ready)] == [None, None]
    is_allowed.set()
    assert [item for item in ready if item is not None] == ["late"]


@pytest.mark.parametrize("is_blocked", [True, False], ids=["waiting for its source", "waiting for room"])
def test_nothing_is_made_for_a_reader_that_has_gone(is_blocked: bool) -> None:
    made, is_allowed, has_ended = list[int](), threading.Event(), threading.Event()

    def items() -> Iterator[int]:
        try:
            for number in range(1000):
                if is_blocked and number:
                    assert is_allowed.wait(WAIT_S)
                made.append(number)
                yield number
        finally:
            has_ended.set()

    ready = read_ahead(items(), WAIT_S)
    assert next(ready) == 0
    if not is_blocked:
        assert poll_until(lambda: len(made) == 3, WAIT_S)  # one is taken, one is ready, one waits for room
    ready.close()
    is_allowed.set()
    assert has_ended.wait(WAIT_S)
    assert len(made) <= 4
