"""Results come in the order of the items, with the errors at their positions, and no more is done than is wanted."""

import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import closing

import pytest

from penstock.cli.ordered_work import is_working, work_in_order


def count(stop: int) -> Generator[int, None, None]:
    yield from range(stop)


def same(number: int) -> int:
    return number


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("items", [0, 1, 2, 1000])
def test_results_come_in_the_order_of_the_items(items: int, threads: int) -> None:
    def work(number: int) -> int:
        if number % 7 == 0:
            time.sleep(0.0005)  # the next ones are done before it
        return -number

    assert list(work_in_order(count(items), work, threads=threads)) == [-number for number in range(items)]


def test_two_items_are_worked_on_at_the_same_time() -> None:
    """Each of the two threads waits inside its work until the other one is there too."""
    both = threading.Barrier(2, timeout=60)

    def work(number: int) -> int:
        both.wait()
        return number

    assert list(work_in_order(count(10), work)) == list(range(10))


def test_items_are_made_one_after_the_other() -> None:
    is_busy = threading.Lock()

    def items() -> Generator[int, None, None]:
        for number in range(100):
            assert is_busy.acquire(blocking=False)
            time.sleep(0.0002)
            is_busy.release()
            yield number

    assert list(work_in_order(items(), same)) == list(range(100))


def test_an_error_of_the_items_comes_after_the_results_before_it() -> None:
    def items() -> Generator[int, None, None]:
        yield 1
        yield 2
        raise ValueError("broken")

    results = work_in_order(items(), same)
    assert [next(results), next(results)] == [1, 2]
    with pytest.raises(ValueError, match="broken"):
        next(results)


def test_an_error_of_the_work_comes_after_the_results_before_it() -> None:
    def work(number: int) -> int:
        if number == 5:
            raise ValueError("broken")
        time.sleep(0.01 if number == 4 else 0)  # the error is there before the result before it
        return number

    results = work_in_order(count(100), work)
    assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="broken"):
        next(results)
    assert not is_working(60)


def test_closing_ends_the_threads_and_the_iterator_of_the_items() -> None:
    ended, made = threading.Event(), []

    def items() -> Generator[int, None, None]:
        try:
            for number in range(1_000_000):
                made.append(number)
                yield number
        finally:
            ended.set()

    with closing(work_in_order(items(), same)) as results:
        assert next(results) == 0
    assert ended.wait(60)
    assert len(made) < 10
    assert not is_working(60)


def test_only_a_few_items_are_there_at_once() -> None:
    """Each thread has one item that it works on, or its result, however slow the reader is."""
    made: list[int] = []

    def items() -> Generator[int, None, None]:
        for number in range(1000):
            made.append(number)
            yield number

    for done, _ in enumerate(work_in_order(items(), same), 1):
        if done < 20:
            time.sleep(0.005)
        assert len(made) <= done + 1


# Threads that take the interpreter's lock again and again inside C++ code, in a command that ends by an exception.
_ENDING = """
import sys, time
import numpy
from penstock import cli
from penstock.cli.ordered_work import work_in_order

objects = [[] for _ in range(1_000_000)]  # the end of the interpreter takes some time

def items():
    yield from range(3)

def work(number):
    numbers = numpy.arange(10)
    while number:
        numpy.unique(numbers)

def run(arguments):
    results = work_in_order(items(), work)
    next(results)
    time.sleep(0.3)
    raise {exception}

cli._run_command = run
cli.main()
"""


@pytest.mark.parametrize(
    ("exception", "code", "error"),
    [
        ("KeyboardInterrupt", 130, b""),
        ("SystemExit", 0, b""),
        ("SystemExit('what is wrong')", 1, b"what is wrong\n"),
        ("RuntimeError('a mistake of ours')", 1, b"RuntimeError: a mistake of ours\n"),
    ],
)
def test_a_process_ends_as_it_should_while_the_threads_work(exception: str, code: int, error: bytes) -> None:
    """The interpreter would end the threads inside C++ code, and that would abort the process."""
    script = _ENDING.format(exception=exception)
    ended = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=120, check=False) for _ in range(3)
    ]
    assert [process.returncode for process in ended] == [code] * 3
    for process in ended:
        assert process.stderr.endswith(error)
        assert (b"Traceback" in process.stderr) == ("RuntimeError" in exception)
        assert b"terminate" not in process.stderr
