"""Changes as they come: an iterator of record batches that resumes after a broken connection and after ALTER TABLE."""

import json
import logging
import time
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
import pyarrow as pa

from penstock.backoff import Backoff, RetryTimer
from penstock.binlog.arrays import to_numpy
from penstock.binlog.rows.fields import CHANGE_FIELDS
from penstock.client.link import ServerLink, ServerStream
from penstock.errors import MetaError, PenstockError, TableAlteredError
from penstock.model.start_point import is_fixed

log = logging.getLogger(__name__)

_ORDER = [CHANGE_FIELDS.names.index(name) - len(CHANGE_FIELDS) for name in ("_seq", "_row")]
_BACKOFF = Backoff(0.05, 2.0)


class ChangeStream:
    """A stream of changes as record batches that survives broken connections and ALTER TABLE.

    Each row is delivered once as long as this object lives: rows that came before a reconnect are left out. A new
    stream from a stored `position` may repeat a part of one transaction.
    """

    def __init__(self, link: ServerLink, request: Mapping[str, Any], retry_timeout_s: float) -> None:
        self._link, self._request, self._retry_timeout_s = link, dict(request), retry_timeout_s
        self.position: Mapping[str, Any] | None = None  # where to resume; None until the server has said it
        self.schema: pa.Schema | None = None  # of the batches, once the stream is open
        self._last: tuple[int, int] | None = None  # the last row that was given
        self._stream: ServerStream | None = None
        self._is_closed = False
        self._open_stream()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield record batches as they come."""
        while True:
            try:
                chunk = self._read_chunk()
            except StopIteration:
                return
            batch = self._drop_repeated(chunk.data)
            self._record_position(json.loads(chunk.app_metadata.to_pybytes()), batch.num_rows)
            if batch.num_rows:
                self._last = _order_key(batch, batch.num_rows - 1)
                yield batch

    def close(self) -> None:
        """End the stream, also from another thread while it waits."""
        self._is_closed = True
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.cancel()

    def _record_position(self, metadata: Mapping[str, Any], rows: int) -> None:  # noqa: ARG002 - others count
        """Record the position after a batch."""
        self.position = metadata.get("position") or self.position

    # -- the stream

    def _open_stream(self, *, waits_for_start: bool = True) -> ServerStream:
        """Open the stream at the server."""
        ticket, has_end = json.dumps(self._request).encode(), self._is_fixed_range
        stream = self._link.open_stream(ticket, waits_for_start=waits_for_start, has_end=has_end)
        self._stream, self.schema = stream, stream.schema
        return stream

    @property
    def _is_fixed_range(self) -> bool:
        """Return whether both ends are positions, which the server need not look for."""
        return isinstance(self._request.get("end"), dict) and isinstance(self._request.get("start"), dict)

    def _read_chunk(self) -> Any:
        """Return the next record batch of the stream, and reconnect when the stream breaks. The retry timeout counts
        until a record batch arrives: a server that only accepts the call may still have no data.
        """
        timer: RetryTimer | None = None  # from the first failure on
        while True:
            if self._is_closed:
                raise StopIteration
            try:
                stream = self._stream or self._open_stream(waits_for_start=False)  # this loop waits, and can be closed
                if self._is_closed:  # while it was being opened
                    stream.cancel()
                return stream.read_chunk()
            except PenstockError as error:
                if self._is_closed:
                    raise StopIteration from None
                is_altered = isinstance(error, TableAlteredError) and timer is None
                timer = timer or RetryTimer(_BACKOFF, is_first_at_once=True)
                delay_s = timer.next_delay_s(self._retry_timeout_s)
                if not self._can_resume(error) or delay_s is None:
                    raise
                if not is_altered:
                    log.warning(
                        "change stream from Penstock server lost, reconnect scheduled destination=%s delay_s=%.2f"
                        " reason=%s",
                        *(self._request["destination"], delay_s, error),
                    )
                time.sleep(delay_s)
                self._stream = None
                self._prepare_resume()

    def _can_resume(self, error: PenstockError) -> bool:
        """Tell whether the stream can be resumed: words and relative times mean another position each time, so not
        before the first position is known.
        """
        bounds = (self.position or self._request["start"], self._request.get("end"))
        return error.transient and all(not isinstance(bound, str) or is_fixed(bound) for bound in bounds)

    def _prepare_resume(self) -> None:
        """Let the next request resume at the last position."""
        self._request["start"] = self.position or self._request["start"]

    def _drop_repeated(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch without rows that came before: after a break, part of a transaction is repeated."""
        if not batch.num_rows or self._last is None or _order_key(batch, 0) > self._last:
            return batch
        seq, row = (to_numpy(batch.column(batch.num_columns + at)) for at in _ORDER)
        last_seq, last_row = self._last
        is_new = (seq > last_seq) | (seq == last_seq) & (row > last_row)
        return batch.slice(int(np.argmax(is_new))) if is_new.any() else batch.slice(0, 0)


class ClientSubscription(ChangeStream):
    """A stream of a client whose cursor the server persists: what was not acked is redelivered."""

    def __init__(self, link: ServerLink, request: Mapping[str, Any], retry_timeout_s: float) -> None:
        self._subscription = {key: request[key] for key in ("destination", "client")}
        self._got: int | None = None  # the last batch of which all was read
        self._unacked = 0  # rows
        super().__init__(link, request, retry_timeout_s)

    def _record_position(self, metadata: Mapping[str, Any], rows: int) -> None:
        """Record the position and the batch to ack."""
        super()._record_position(metadata, rows)
        self._unacked += rows
        self._got = metadata.get("batch", self._got)
        if not self._unacked:
            self.ack()  # nothing that anybody would do anything with

    def ack(self) -> None:
        """Ack everything that was delivered, except a batch of which parts are still to come. If the server cannot be
        reached, the batches are redelivered.
        """
        if self._got is None:
            return
        try:
            # An instance that is still starting has forgotten the batch: there is nothing to wait for.
            self._link.call_action("ack", {**self._subscription, "batch": self._got}, waits_for_start=False)
        except PenstockError as error:
            if not error.transient and not isinstance(error, MetaError):
                raise
            destination = self._subscription["destination"]
            log.warning(
                "ack failed destination=%s batch=%d reason=%s: the batch will be redelivered",
                destination,
                self._got,
                error,
            )
        self._got, self._unacked = None, 0

    def rollback(self) -> None:
        """Roll back what was not acked: it is redelivered."""
        self.close()
        self._got, self._unacked, self._last, self._is_closed = None, 0, None, False
        self._open_stream()

    def _can_resume(self, error: PenstockError) -> bool:
        """Return True: the server has the cursor."""
        return error.transient

    def _prepare_resume(self) -> None:
        """Let the next request resume at the last ack, so that what was not acked is redelivered."""
        self._got, self._unacked, self._last = None, 0, None


def _order_key(batch: pa.RecordBatch, row: int) -> tuple[int, int]:
    """Return `_seq` and `_row` of a row, by which changes are ordered."""
    first, second = (batch.column(batch.num_columns + at)[row].as_py() for at in _ORDER)
    return first, second
