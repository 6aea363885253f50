"""What one client sees of an instance, or of a group of them: its entries, batch by batch."""

import operator
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from penstock.config import FilterSettings
from penstock.config.canal_rendering import CanalRendering
from penstock.config.time_zone import zone_name
from penstock.errors import PenstockError
from penstock.filter import ColumnRules
from penstock.group.group import GroupBatch
from penstock.instance import Instance
from penstock.instance.filter import table_filter
from penstock.render.canal import EntryEncoder, EntryOptions
from penstock.render.canal.values import CanalValueWriter
from penstock.render.canal.zone import parse_time_zone
from penstock.server.groups import ServedGroup
from penstock.store import Batch, BatchSize

_LOOK_S = 1.0  # how often is looked whether a client that waits is still there
_PART_BYTES = 512 << 10  # of the log that is rendered at a time: what is made of it is many times as large
_MOST_BYTES, _MOST_ENTRIES = 32 << 20, 1 << 16  # of a batch, whatever a client asks for
_DEFAULT_SIZE = 1000
_ONE = BatchSize(1)
_ALONE = ""  # the name of an instance that is no member
Served = Instance | ServedGroup


@dataclass(frozen=True, slots=True, eq=False)
class RenderedBatch:
    """Pieces are entries one after the other, as fields of canal's Messages."""

    batch_id: int
    pieces: tuple[NDArray[np.uint8], ...]
    is_large: bool = False  # at least half of what was asked for: there is more to come

    @property
    def size_bytes(self) -> int:
        return sum(piece.size for piece in self.pieces)


NOTHING = RenderedBatch(-1, ())


class ClientView:
    """What one client of canal's protocol sees of a destination, by its filter.

    Batches in which it would see nothing are acked for it, in order. Any thread may call it.
    """

    def __init__(self, instance: Served, client_id: int, text: str) -> None:
        self.instance, self._client_id = instance, client_id
        self._lock = threading.Lock()  # of all below
        self._unseen: set[int] = set()
        self._ahead: tuple[int, Batch] | RenderedBatch | None = None  # what the next get will give
        self.subscribe(text)

    def subscribe(self, text: str) -> None:
        entries = self._rendered_by(text)
        is_known = self._client_id in self.instance.clients.subscriptions()
        self.instance.clients.subscribe(self._client_id, text)
        with self._lock:
            if not is_known:  # it is new, or was forgotten: then batches of before are none of its own
                self._unseen.clear()
                self._ahead = None
            self._text, self._entries, self._filters = text, entries, self._present_filters

    @property
    def _members(self) -> Mapping[str, Instance]:
        return self.instance.instances if isinstance(self.instance, ServedGroup) else {_ALONE: self.instance}

    @property
    def _present_filters(self) -> list[FilterSettings]:
        return [member.settings.filter for member in self._members.values()]

    def _rendered_by(self, text: str) -> dict[str, EntryEncoder]:
        return {name: EntryEncoder(self._rendering(member, text)) for name, member in self._members.items()}

    def _rendering(self, instance: Instance, text: str) -> EntryOptions:
        shown = self._shown
        return EntryOptions(
            instance.components.tables.declared_types_of,
            CanalValueWriter(shown.values, parse_time_zone(zone_name(shown.time_zone))),
            ColumnRules.from_settings(instance.settings.filter.columns),
            table_filter(text),
            transactions=shown.transactions,
            gtids=shown.gtids,
            accounts="dcl" in instance.settings.filter.kinds,
        )

    @property
    def _shown(self) -> CanalRendering:
        return self.instance.settings.canal

    def get(
        self, fetch_size: int, timeout_s: float | None, *, at_once: bool = False, is_gone: Callable[[], bool]
    ) -> RenderedBatch:
        """None waits for ever, or until the client is gone."""
        if (ready := self._take_ahead()) is not None:
            return ready
        size, clients = self._size(fetch_size), self.instance.clients
        enough = self._enough(size, at_once=at_once)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left = _LOOK_S if deadline is None else max(0.0, deadline - time.monotonic())
            is_there = clients.wait(self._client_id, enough, min(left, _LOOK_S))
            is_over = deadline is not None and left <= _LOOK_S
            # What is not enough is taken when the time is over.
            got = (
                clients.get(self._client_id, size, is_ddl_alone=self._shown.ddl_alone) if is_there or is_over else None
            )
            answer = self._rendered(*got, size) if got is not None else None
            if answer is not None:
                return answer
            if (is_over and got is None) or is_gone():
                return NOTHING

    def _enough(self, size: BatchSize, *, at_once: bool = False) -> BatchSize:
        """To answer before the time is over. A group never waits for all of it, and is to be asked for what it will
        be asked for then: with less room, a piece of a transaction would do."""
        if isinstance(self.instance, ServedGroup):
            return size
        return size if self._shown.waits_for == "batch" and not at_once else _ONE

    def _size(self, fetch_size: int) -> BatchSize:
        count, shown = fetch_size if fetch_size > 0 else _DEFAULT_SIZE, self._shown
        if shown.unit == "items":
            return BatchSize(min(count, _MOST_ENTRIES))
        return BatchSize(min(count, max(1, _MOST_BYTES // shown.unit_bytes)), "memory", shown.unit_bytes)

    def prepare(self, fetch_size: int) -> None:
        """The next batch, while the client is busy with the last one. One that cannot be shown is an error of the get
        that asks for it."""
        size, clients = self._size(fetch_size), self.instance.clients
        with self._lock:
            if self._ahead is not None or not clients.wait(self._client_id, self._enough(size), 0):
                return
            got = clients.get(self._client_id, size, is_ddl_alone=self._shown.ddl_alone)
            if got is not None:
                try:
                    self._ahead = self._written(*got, size)
                except Exception:  # noqa: BLE001 - whatever it is, the get that asks for it meets it
                    self._ahead = got

    def _take_ahead(self) -> RenderedBatch | None:
        with self._lock:
            ahead, self._ahead = self._ahead, None
            number = ahead[0] if isinstance(ahead, tuple) else ahead.batch_id if ahead is not None else None
            if number is not None and number not in self.instance.clients.outstanding(self._client_id):
                return None  # its position was set meanwhile, or it was forgotten
        return self._rendered(*ahead, _ONE) if isinstance(ahead, tuple) else ahead

    def _rendered(self, batch_id: int, batch: Batch, size: BatchSize) -> RenderedBatch | None:
        """None for a batch of which the client is to see nothing."""
        with self._lock:
            try:
                return self._written(batch_id, batch, size)
            except PenstockError:
                self._unseen.clear()
                self.instance.clients.rollback(self._client_id)
                raise

    def _written(self, batch_id: int, batch: Batch, size: BatchSize) -> RenderedBatch | None:
        filters = self._present_filters
        if not all(map(operator.is_, filters, self._filters)):  # one was reloaded
            self._entries, self._filters = self._rendered_by(self._text), filters
        names = batch.members if isinstance(batch, GroupBatch) else repeat(_ALONE)
        written = [
            self._entries[name].encode_block(part)
            for name, block in zip(names, batch.blocks, strict=False)
            for part in block.split(_PART_BYTES)
        ]
        pieces = tuple(one.data for one in written if len(one))
        if pieces:
            has = sum(map(len, batch.blocks)) if size.unit == "items" else sum(one.size_bytes for one in batch.blocks)
            return RenderedBatch(batch_id, pieces, 2 * has >= (size.count if size.unit == "items" else size.bytes))
        self._unseen.add(batch_id)
        self._ack_unseen()
        return None

    def ack(self, batch_id: int) -> None:
        with self._lock:
            self.instance.clients.ack(self._client_id, batch_id)
            self._ack_unseen()

    def _ack_unseen(self) -> None:
        clients = self.instance.clients
        while (ids := clients.outstanding(self._client_id)) and ids[0] in self._unseen:
            clients.ack(self._client_id, ids[0])
            self._unseen.discard(ids[0])

    def rollback(self, batch_id: int | None) -> None:
        with self._lock:
            self._unseen.clear()
            self._ahead = None
            self.instance.clients.rollback(self._client_id, batch_id)
