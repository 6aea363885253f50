"""Items that a thread makes come in their order, with its errors, and no more of them than are wanted."""

import threading
from collections.abc import Generator
from contextlib import closing

import pytest

from penstock.cli.read_ahead import read_ahead


def test_items_come_in_their_order() -> None:
    assert list(read_ahead(number for number in range(1000))) == list(range(1000))


def test_an_error_comes_after_the_items_before_it() -> None:
    def items() -> Generator[int, None, None]:
        yield 1
        yield 2
        raise ValueError("broken")

    ahead = read_ahead(items())
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(ValueError, match="broken"):
        next(ahead)


def test_closing_ends_the_thread_and_the_iterator() -> None:
    ended, made = threading.Event(), []

    def items() -> Generator[int, None, None]:
        try:
            for number in range(1_000_000):
                made.append(number)
                yield number
        finally:
            ended.set()

    with closing(read_ahead(items())) as ahead:
        assert next(ahead) == 0
    assert ended.wait(60)
    assert len(made) < 10


def test_another_thread_makes_them_while_one_is_used() -> None:
    names: list[str] = []

    def items() -> Generator[int, None, None]:
        for number in range(3):
            names.append(threading.current_thread().name)
            yield number

    assert list(read_ahead(items())) == [0, 1, 2]
    assert set(names) == {"read-ahead"}
