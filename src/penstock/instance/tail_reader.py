"""Follows the log from a position on for a reader that keeps the position itself: nothing is persisted, and capture
hardly waits for it."""

import itertools
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

from penstock.capture.state import InstanceState
from penstock.errors import NotRunningError, StoreError
from penstock.instance.instance import Instance
from penstock.model import Position
from penstock.store import Batch, BatchSize, ClientState, Start

_POLL_S = 1.0
_EVICT_AFTER_S = 5.0  # a reader that asks for nothing for this long is evicted
_ONE_ENTRY = BatchSize(1)
_BATCH_SIZE = BatchSize(4096, "memory")
_ENDED = {InstanceState.STOPPED, InstanceState.FAILED}
_numbers = itertools.count(1)


@contextmanager
def open_tail(instance: Instance, start: Start) -> Generator["TailReader"]:
    """Open a reader that follows the log from `start` on, for the length of the block."""
    if start.position is not None:
        instance.source_log.check_reached(start.position, instance.store.latest)
    reader = TailReader(instance, start)
    try:
        yield reader
    finally:
        reader.close()


class TailReader:
    """Yields what is captured after a start position. For one thread. A batch counts as processed when the next one is
    asked for."""

    def __init__(self, instance: Instance, start: Start) -> None:
        self._instance, self._store = instance, instance.store
        self._name = f"stream-{next(_numbers)}"
        self.position = self._join(start)  # a transaction boundary: a new reader would resume here

    def _join(self, start: Start) -> Position:
        """Add this reader to the store at `start`, and return its position."""
        return self._store.add_client(self._name, start, evict_after_s=_EVICT_AFTER_S)

    def batches(self, is_over: Callable[[], bool]) -> Iterator[Batch | None]:
        """Yield batches until `is_over` returns true; None about every second while nothing is captured."""
        while not is_over():
            batch = self._get_batch()
            yield batch
            if batch is not None:
                self.position = batch.ack or self.position
                self._ack(batch)

    def _get_batch(self) -> Batch | None:
        """Return the next batch, or None. A reader that was evicted joins again, and is served from the source's
        log."""
        try:
            self._store.wait(self._name, _ONE_ENTRY, _POLL_S)
            return self._store.get(self._name, _BATCH_SIZE)
        except StoreError:
            if self._instance.state in _ENDED:
                raise NotRunningError(f"instance '{self._instance.settings.destination}' was stopped") from None
            if not self._is_evicted:
                raise
            self._join(Start.cursor(self.position))  # from there on it is served from the source's log
            return None

    def _ack(self, batch: Batch) -> None:
        """Ack a processed batch, so that the store can free it."""
        sequence = batch.end_sequence
        try:
            self._store.ack(self._name, batch.end, sequence if sequence >= 0 else None)
        except StoreError:
            if self._is_evicted:
                return  # the next get joins again
            if sequence <= self._store.sequences(self._name)[1]:
                raise
            # The source's connection broke inside of the batch's last transaction, which is redelivered.
            if batch.ack is not None:
                self._store.release(self._name, batch.ack)

    @property
    def _is_evicted(self) -> bool:
        """Return whether the store has evicted this reader because it was too slow."""
        return self._store.states().get(self._name) is ClientState.LOST

    def close(self) -> None:
        """Remove this reader from the store, which then holds no blocks for it."""
        self._store.forget_client(self._name)
