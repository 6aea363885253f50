"""Whoever follows the log from a place on and keeps that place himself: nothing is acked, and capture waits little."""

import itertools
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

from penstock.capture.state import InstanceState
from penstock.errors import NotRunningError, StoreError
from penstock.instance.instance import Instance
from penstock.model import Position
from penstock.store import Batch, BatchSize, ClientState, Start

_LOOK_S = 1.0
_SILENT_S = 5.0  # so long capture waits for one who does not come back for more
_ONE = BatchSize(1)
_SIZE = BatchSize(4096, "memory")
_OVER = {InstanceState.STOPPED, InstanceState.FAILED}
_numbers = itertools.count(1)


@contextmanager
def open_tail(instance: Instance, start: Start) -> Generator["TailReader"]:
    if start.position is not None:
        instance.source_log.check_reached(start.position, instance.store.latest)
    one = TailReader(instance, start)
    try:
        yield one
    finally:
        one.close()


class TailReader:
    """For one thread. What was given is done when the next is asked for."""

    def __init__(self, instance: Instance, start: Start) -> None:
        self._instance, self._store = instance, instance.store
        self._name = f"stream-{next(_numbers)}"
        self.place = self._join(start)  # between two transactions: from here on it would come again

    def _join(self, start: Start) -> Position:
        return self._store.add_client(self._name, start, evict_after_s=_SILENT_S)

    def batches(self, is_over: Callable[[], bool]) -> Iterator[Batch | None]:
        """None from time to time, while nothing comes."""
        while not is_over():
            batch = self._next()
            yield batch
            if batch is not None:
                self.place = batch.ack or self.place
                self._ack(batch)

    def _next(self) -> Batch | None:
        try:
            self._store.wait(self._name, _ONE, _LOOK_S)
            return self._store.get(self._name, _SIZE)
        except StoreError:
            if self._instance.state in _OVER:
                raise NotRunningError(f"instance '{self._instance.settings.destination}' was stopped") from None
            if not self._has_given_way:
                raise
            self._join(Start.cursor(self.place))  # from there on the source's log is read for it
            return None

    def _ack(self, batch: Batch) -> None:
        sequence = batch.end_sequence
        try:
            self._store.ack(self._name, batch.end, sequence if sequence >= 0 else None)
        except StoreError:
            if self._has_given_way:
                return  # the next get meets it
            if sequence <= self._store.sequences(self._name)[1]:
                raise
            # The source's connection broke inside of the batch's last transaction, which comes again.
            if batch.ack is not None:
                self._store.release(self._name, batch.ack)

    @property
    def _has_given_way(self) -> bool:
        return self._store.states().get(self._name) is ClientState.LOST

    def close(self) -> None:
        self._store.forget_client(self._name)
