"""Lets a thread of its own make what a stream sends, so that the stream can say meanwhile that its server is alive."""

import queue
import threading
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _MadeItem(Generic[T]):
    """Something that was made."""

    value: T


@dataclass(frozen=True, slots=True)
class _End:
    """The end of an iterator, with the error that has ended it."""

    error: BaseException | None


def read_ahead(items: Iterator[T], wait_s: float) -> Generator[T | None]:
    """Yield the items of an iterator, which runs in a thread of its own, at most two ahead; None when no item came
    within `wait_s`.

    When this generator is closed, the thread ends with the item that it is making, and nobody waits for that.
    """
    ready: queue.Queue[_MadeItem[T] | _End] = queue.Queue(1)
    is_closed = threading.Event()
    threading.Thread(
        target=_make_items, args=(items, ready, is_closed), name="penstock-read-ahead", daemon=True
    ).start()
    try:
        while True:
            try:
                made = ready.get(timeout=wait_s)
            except queue.Empty:
                yield None
                continue
            if isinstance(made, _MadeItem):
                yield made.value
            elif made.error is not None:
                raise made.error
            else:
                return
    finally:
        is_closed.set()
        with suppress(queue.Empty):
            ready.get_nowait()  # it may wait for room


def _make_items(items: Iterator[T], ready: queue.Queue[_MadeItem[T] | _End], is_closed: threading.Event) -> None:
    """Put all items into the queue, and then how it ended."""
    end = _End(None)
    try:
        for item in items:
            ready.put(_MadeItem(item))
            if is_closed.is_set():
                return
    except BaseException as error:  # noqa: BLE001 - raised where the items are taken
        end = _End(error)
    finally:
        if isinstance(items, Generator):
            items.close()
    ready.put(end)
