"""Items that a thread makes come in their order, with its errors, and no more of them than are wanted."""

import subprocess
import sys
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
    assert set(names) == {"penstock-read-ahead"}


# A thread that takes the interpreter's lock again and again inside C++ code, in a command that is interrupted.
_INTERRUPTED = """
import time
import numpy
from penstock import cli
from penstock.cli.read_ahead import read_ahead

objects = [[] for _ in range(1_000_000)]  # the end of the interpreter takes some time

def items():
    yield 0
    numbers = numpy.arange(10)
    while True:
        numpy.unique(numbers)

def run(arguments):
    next(read_ahead(items()))
    time.sleep(0.3)
    raise KeyboardInterrupt

cli._run = run
cli.main()
"""


def test_a_process_ends_as_it_should_while_the_thread_works() -> None:
    """The interpreter would end the thread inside C++ code, and that would abort the process."""
    ended = [
        subprocess.run([sys.executable, "-c", _INTERRUPTED], capture_output=True, timeout=120, check=False)
        for _ in range(3)
    ]
    assert [(one.returncode, one.stderr) for one in ended] == [(130, b"")] * 3
