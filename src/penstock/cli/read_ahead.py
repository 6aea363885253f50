"""Work in two threads: one makes items, the other uses them. Kernels run without Python's lock, so both run at once."""

import queue
import threading
import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
_POLL_S = 0.1
_NAME = "penstock-read-ahead"


@dataclass(frozen=True, slots=True)
class _Item(Generic[T]):
    value: T


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None


def read_ahead(items: Generator[T, None, None], *, depth: int = 1) -> Generator[T, None, None]:
    """Yield the items in their order, while a thread makes up to `depth` more of them.

    An error of the iterator is raised where its item would have been. Closing the generator ends the thread after the
    item that it is making.
    """
    ready: queue.Queue[_Item[T] | _End] = queue.Queue(depth)
    is_closed = threading.Event()
    thread = threading.Thread(target=_fill, args=(items, ready, is_closed), name=_NAME, daemon=True)
    thread.start()
    try:
        while isinstance(item := ready.get(), _Item):
            yield item.value
        if item.error is not None:
            raise item.error
    finally:
        is_closed.set()


def is_reading(patience_s: float) -> bool:
    """Tell whether a thread still makes an item after this time: the process must then end without waiting for it.

    An interpreter that shuts down ends such a thread inside a call of a C++ library, which aborts the process.
    """
    end = time.monotonic() + patience_s
    for thread in threading.enumerate():
        if thread.name == _NAME:
            thread.join(max(end - time.monotonic(), 0))
            if thread.is_alive():
                return True
    return False


def _fill(items: Generator[T, None, None], ready: "queue.Queue[_Item[T] | _End]", is_closed: threading.Event) -> None:
    error: BaseException | None = None
    try:
        with closing(items):
            for value in items:
                if not _put(ready, _Item(value), is_closed):
                    return
    except BaseException as problem:  # noqa: BLE001 - raised again by the thread that reads
        error = problem
    _put(ready, _End(error), is_closed)


def _put(ready: "queue.Queue[_Item[T] | _End]", item: "_Item[T] | _End", is_closed: threading.Event) -> bool:
    """Wait for room; False when nobody reads any longer."""
    while not is_closed.is_set():
        try:
            ready.put(item, timeout=_POLL_S)
        except queue.Full:
            continue
        return True
    return False
