"""Changes as they come: an iterator of record batches that goes on after a broken connection, and after ALTER TABLE."""

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
from penstock.client.link import Link, Stream
from penstock.errors import MetaError, PenstockError, TableAlteredError
from penstock.model.start_point import is_fixed

log = logging.getLogger(__name__)

_ORDER = [CHANGE_FIELDS.names.index(name) - len(CHANGE_FIELDS) for name in ("_seq", "_row")]
_BACKOFF = Backoff(0.05, 2.0)


class Changes:
    """Each row comes once, as long as this object lives: after a reconnect what came already is left out. Who begins
    again at a `position` that he has kept may get a part of one transaction twice."""

    def __init__(self, link: Link, request: Mapping[str, Any], patience_s: float) -> None:
        self._link, self._request, self._patience_s = link, dict(request), patience_s
        self.position: Mapping[str, Any] | None = None  # where to go on; None until the server has said it
        self.schema: pa.Schema | None = None  # of the batches, once the stream is open
        self._last: tuple[int, int] | None = None  # the last row that was given
        self._stream: Stream | None = None
        self._is_closed = False
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            try:
                chunk = self._read()
            except StopIteration:
                return
            batch = self._news(chunk.data)
            self._note(json.loads(chunk.app_metadata.to_pybytes()), batch.num_rows)
            if batch.num_rows:
                self._last = _order_of(batch, batch.num_rows - 1)
                yield batch

    def close(self) -> None:
        """Also from another thread, while it waits."""
        self._is_closed = True
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.cancel()

    def _note(self, about: Mapping[str, Any], rows: int) -> None:  # noqa: ARG002 - others count
        self.position = about.get("position") or self.position

    # -- the stream

    def _open(self, *, waits_for_start: bool = True) -> Stream:
        stream = self._link.get(json.dumps(self._request).encode(), waits_for_start=waits_for_start)
        self._stream, self.schema = stream, stream.schema
        return stream

    def _read(self) -> Any:
        """A break is over when something has come again: a server may take the call, and have nothing to give."""
        timer: RetryTimer | None = None  # from the first failure on
        while True:
            if self._is_closed:
                raise StopIteration
            try:
                stream = self._stream or self._open(waits_for_start=False)  # this loop waits, and can be closed
                if self._is_closed:  # while it was being opened
                    stream.cancel()
                return stream.read_chunk()
            except PenstockError as error:
                if self._is_closed:
                    raise StopIteration from None
                is_altered = isinstance(error, TableAlteredError) and timer is None
                timer = timer or RetryTimer(_BACKOFF, is_first_at_once=True)
                delay_s = timer.next_delay_s(self._patience_s)
                if not self._can_go_on(error) or delay_s is None:
                    raise
                if not is_altered:
                    log.warning(
                        "stream reopened destination=%s delay_s=%.2f reason=%s",
                        *(self._request["destination"], delay_s, error),
                    )
                time.sleep(delay_s)
                self._stream = None
                self._again()

    def _can_go_on(self, error: PenstockError) -> bool:
        """Words and relative times mean another position each time they are asked for."""
        bounds = (self.position or self._request["start"], self._request.get("end"))
        return error.transient and all(not isinstance(bound, str) or is_fixed(bound) for bound in bounds)

    def _again(self) -> None:
        """What is asked for after a break."""
        self._request["start"] = self.position or self._request["start"]

    def _news(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Without rows that came already: after a break, here or between server and source, a part of a transaction
        comes again."""
        if not batch.num_rows or self._last is None or _order_of(batch, 0) > self._last:
            return batch
        seq, row = (to_numpy(batch.column(batch.num_columns + at)) for at in _ORDER)
        last_seq, last_row = self._last
        is_new = (seq > last_seq) | (seq == last_seq) & (row > last_row)
        return batch.slice(int(np.argmax(is_new))) if is_new.any() else batch.slice(0, 0)


class Subscription(Changes):
    """Of a client that the server keeps a cursor for: what was not acked comes again."""

    def __init__(self, link: Link, request: Mapping[str, Any], patience_s: float) -> None:
        self._about = {key: request[key] for key in ("destination", "client")}
        self._got: int | None = None  # the last batch of which all was read
        self._unacked = 0  # rows
        super().__init__(link, request, patience_s)

    def _note(self, about: Mapping[str, Any], rows: int) -> None:
        super()._note(about, rows)
        self._unacked += rows
        self._got = about.get("batch", self._got)
        if not self._unacked:
            self.ack()  # nothing that anybody would do anything with

    def ack(self) -> None:
        """Everything that was given, but for a batch of which pieces are still to come. What cannot be acked, because
        the server went away in the meantime, comes again."""
        if self._got is None:
            return
        try:
            # An instance that is still starting has forgotten the batch: there is nothing to wait for.
            self._link.action("ack", {**self._about, "batch": self._got}, waits_for_start=False)
        except PenstockError as error:
            if not error.transient and not isinstance(error, MetaError):
                raise
            destination = self._about["destination"]
            log.warning(
                "ack failed, will be redelivered destination=%s batch=%d reason=%s", destination, self._got, error
            )
        self._got, self._unacked = None, 0

    def rollback(self) -> None:
        """What was not acked comes again."""
        self.close()
        self._got, self._unacked, self._last, self._is_closed = None, 0, None, False
        self._open()

    def _can_go_on(self, error: PenstockError) -> bool:
        return error.transient

    def _again(self) -> None:
        """From the last ack on: what was given and not acked comes again, as it would to another process."""
        self._got, self._unacked, self._last = None, 0, None


def _order_of(batch: pa.RecordBatch, row: int) -> tuple[int, int]:
    first, second = (batch.column(batch.num_columns + at)[row].as_py() for at in _ORDER)
    return first, second
