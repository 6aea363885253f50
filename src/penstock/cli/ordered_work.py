"""Work on the items of a sequence in several threads, with the results in the order of the items.

Kernels run without Python's lock, so the threads work at the same time. The items themselves are made by one thread at
a time, in their order: what makes them may have state. Memory is bounded: a thread takes its next item when its last
result was used.
"""

import queue
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from itertools import cycle
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")
_NAME = "penstock-ordered-work"


@dataclass(frozen=True, slots=True)
class _Item(Generic[R]):
    """An item, or the result of one."""

    value: R


@dataclass(frozen=True, slots=True)
class _EndOfItems:
    """The end of the items, with the error that caused it, if one did."""

    error: BaseException | None


def work_in_order(
    items: Generator[T, None, None], work: Callable[[T], R], *, threads: int = 2
) -> Generator[R, None, None]:
    """Yield `work(item)` for each item, in the order of the items, while threads work on the next ones.

    An error of the iterator, or of the work, is raised where the result would have been. Closing the generator ends
    each thread after the item that it works on.

    with closing(work_in_order(blocks, render)) as pages:
        for page in pages: ...
    """
    shared = _SharedItems(items, threads)
    workers = [_Worker(shared, number, work) for number in range(threads)]
    for worker in workers:
        threading.Thread(target=worker.run, name=_NAME, daemon=True).start()
    try:
        for worker in cycle(workers):
            result = worker.results.get()
            if isinstance(result, _EndOfItems):
                if result.error is not None:
                    raise result.error
                return
            yield result.value
            del result  # it may be large, and the next one may take long
            worker.may_continue.release()
    finally:
        shared.is_closed.set()
        for worker in workers:
            worker.may_continue.release()


def is_working(timeout_s: float) -> bool:
    """Tell whether a thread still works on an item after this time: the process must then end without waiting for it.

    An interpreter that shuts down ends such a thread inside a call of a C++ library, which aborts the process.
    """
    end = time.monotonic() + timeout_s
    for thread in threading.enumerate():
        if thread.name == _NAME:
            thread.join(max(end - time.monotonic(), 0))
            if thread.is_alive():
                return True
    return False


class _SharedItems(Generic[T]):
    """An iterator from which threads take items in turns; `is_closed` says that no more are wanted."""

    def __init__(self, items: Generator[T, None, None], threads: int) -> None:
        self._items = items
        self._turns = [threading.Semaphore(0) for _ in range(threads)]
        self._turns[0].release()
        self._is_over = False  # only the thread whose turn it is looks at it or sets it
        self.is_closed = threading.Event()

    def take_next(self, thread: int) -> _Item[T] | _EndOfItems:
        """Wait for the turn of a thread, and return the next item or the end. A thread that got an item must take again
        when it is done with it, since the others wait for their turns.
        """
        self._turns[thread].acquire()
        try:
            if self._is_over or self.is_closed.is_set():
                self._items.close()
                return _EndOfItems(None)
            try:
                return _Item(next(self._items))
            except StopIteration:
                end = _EndOfItems(None)
            except BaseException as error:  # noqa: BLE001 - raised again by the thread that reads the results
                end = _EndOfItems(error)
            self._is_over = True
            return end
        finally:
            self._turns[(thread + 1) % len(self._turns)].release()


class _Worker(Generic[T, R]):
    """One thread: it works on one item after the other, each when the result of the one before was used."""

    def __init__(self, items: _SharedItems[T], number: int, work: Callable[[T], R]) -> None:
        self._items, self._number, self._work = items, number, work
        self.results: queue.SimpleQueue[_Item[R] | _EndOfItems] = queue.SimpleQueue()
        self.may_continue = threading.Semaphore(0)

    def run(self) -> None:
        """Work on items until they end."""
        while self._process_item(self._items.take_next(self._number)):
            self.may_continue.acquire()

    def _process_item(self, item: _Item[T] | _EndOfItems) -> bool:
        """Put the result of an item, or the end; return whether there may be another item. It is a function so that
        nothing refers to the item and its result while the thread waits.
        """
        if isinstance(item, _EndOfItems):
            self.results.put(item)
            return False
        try:
            self.results.put(_Item(self._work(item.value)))
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that reads the results
            self.results.put(_EndOfItems(error))
        return True
