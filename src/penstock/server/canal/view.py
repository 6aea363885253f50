"""The batches of one canal client, rendered as canal's entries, from an instance or from a group."""

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
from penstock.config.time_zone import resolve_zone_name
from penstock.errors import PenstockError
from penstock.filter import ColumnRules
from penstock.group.group import GroupBatch
from penstock.instance import Instance
from penstock.instance.filter import parse_client_filter
from penstock.render.canal import EntryEncoder, EntryOptions
from penstock.render.canal.values import CanalValueWriter
from penstock.render.canal.zone import parse_time_zone
from penstock.server.groups import ServedGroup
from penstock.store import Batch, BatchSize

_POLL_S = 1.0  # how often to check whether a waiting client is still connected
_RENDER_BYTES = 512 << 10  # of the log rendered at a time: the result is many times as large
_MAX_BYTES, _MAX_ENTRIES = 32 << 20, 1 << 16  # of a batch, whatever a client asks for
_DEFAULT_SIZE = 1000
_ONE_ENTRY = BatchSize(1)
_NO_MEMBER = ""  # the name of an instance that is no member
Served = Instance | ServedGroup


@dataclass(frozen=True, slots=True, eq=False)
class RenderedBatch:
    """A batch as canal's protobuf. Each chunk holds entries, one after another, as fields of canal's Messages."""

    batch_id: int
    chunks: tuple[NDArray[np.uint8], ...]
    is_large: bool = False  # at least half of the requested size: more is waiting

    @property
    def size_bytes(self) -> int:
        """Return the size of all chunks."""
        return sum(chunk.size for chunk in self.chunks)


EMPTY_BATCH = RenderedBatch(-1, ())


class CanalClientView:
    """Renders what one canal client gets of a destination, by its filter.

    Batches in which it would see nothing are acked for it, in order. Any thread may call it.
    """

    def __init__(self, instance: Served, client_id: int, text: str) -> None:
        self.instance, self._client_id = instance, client_id
        self._lock = threading.Lock()  # of all below
        self._hidden: set[int] = set()
        self._prefetched: tuple[int, Batch] | RenderedBatch | None = None  # what the next get will return
        self.subscribe(text)

    def subscribe(self, text: str) -> None:
        """Subscribe the client with this filter, or replace its filter."""
        entries = self._make_renderers(text)
        is_known = self._client_id in self.instance.clients.subscriptions()
        self.instance.clients.subscribe(self._client_id, text)
        with self._lock:
            if not is_known:  # it is new, or was forgotten: then batches of before are none of its own
                self._hidden.clear()
                self._prefetched = None
            self._text, self._entries, self._filters = text, entries, self._present_filters

    @property
    def _members(self) -> Mapping[str, Instance]:
        """Return the instances behind the destination by member name; for a single instance under one empty name."""
        return self.instance.instances if isinstance(self.instance, ServedGroup) else {_NO_MEMBER: self.instance}

    @property
    def _present_filters(self) -> list[FilterSettings]:
        """Return the filter settings of all instances; they are compared by identity to notice a reload."""
        return [member.settings.filter for member in self._members.values()]

    def _make_renderers(self, text: str) -> dict[str, EntryEncoder]:
        """Return a renderer of canal entries for each member."""
        return {name: EntryEncoder(self._make_rendering(member, text)) for name, member in self._members.items()}

    def _make_rendering(self, instance: Instance, text: str) -> EntryOptions:
        """Return how an instance's rows are rendered for this client."""
        settings = self._canal_settings
        return EntryOptions(
            instance.components.tables.declared_types_of,
            CanalValueWriter(settings.values, parse_time_zone(resolve_zone_name(settings.time_zone))),
            ColumnRules.from_settings(instance.settings.filter.columns),
            parse_client_filter(text),
            transactions=settings.transactions,
            gtids=settings.gtids,
            accounts="dcl" in instance.settings.filter.kinds,
        )

    @property
    def _canal_settings(self) -> CanalRendering:
        """Return the settings that say how canal's clients see the destination."""
        return self.instance.settings.canal

    def get(
        self, fetch_size: int, timeout_s: float | None, *, at_once: bool = False, is_gone: Callable[[], bool]
    ) -> RenderedBatch:
        """Return the next batch in which the client sees something, or an empty one when none came in time. A
        `timeout_s` of None waits until there is one, or the client is gone."""
        if (ready := self._take_prefetched()) is not None:
            return ready
        size, clients = self._batch_size(fetch_size), self.instance.clients
        minimum = self._minimum_size(size, at_once=at_once)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left = _POLL_S if deadline is None else max(0.0, deadline - time.monotonic())
            is_available = clients.wait(self._client_id, minimum, min(left, _POLL_S))
            is_over = deadline is not None and left <= _POLL_S
            # What is less than the minimum is taken when the time is over.
            got = (
                clients.get(self._client_id, size, is_ddl_alone=self._canal_settings.ddl_alone)
                if is_available or is_over
                else None
            )
            answer = self._render_or_roll_back(*got, size) if got is not None else None
            if answer is not None:
                return answer
            if (is_over and got is None) or is_gone():
                return EMPTY_BATCH

    def _minimum_size(self, size: BatchSize, *, at_once: bool = False) -> BatchSize:
        """Return how much must be waiting before a get answers early. A group never waits for a full batch, and must be
        asked for the full size: for less it would deliver a part of a transaction."""
        if isinstance(self.instance, ServedGroup):
            return size
        return size if self._canal_settings.waits_for == "batch" and not at_once else _ONE_ENTRY

    def _batch_size(self, fetch_size: int) -> BatchSize:
        """Return the size of a batch, in the unit of the settings and within the server's limits."""
        count, settings = fetch_size if fetch_size > 0 else _DEFAULT_SIZE, self._canal_settings
        if settings.unit == "items":
            return BatchSize(min(count, _MAX_ENTRIES))
        return BatchSize(min(count, max(1, _MAX_BYTES // settings.unit_bytes)), "memory", settings.unit_bytes)

    def prefetch(self, fetch_size: int) -> None:
        """Get and render the next batch while the client processes the last one. An error is kept for the get that will
        ask for it."""
        size, clients = self._batch_size(fetch_size), self.instance.clients
        with self._lock:
            if self._prefetched is not None or not clients.wait(self._client_id, self._minimum_size(size), 0):
                return
            got = clients.get(self._client_id, size, is_ddl_alone=self._canal_settings.ddl_alone)
            if got is not None:
                try:
                    self._prefetched = self._render(*got, size)
                except Exception:  # noqa: BLE001 - whatever it is, the get that asks for it meets it
                    self._prefetched = got

    def _take_prefetched(self) -> RenderedBatch | None:
        """Return the prefetched batch, unless the cursor was moved or the client was forgotten meanwhile."""
        with self._lock:
            prefetched, self._prefetched = self._prefetched, None
            number = (
                prefetched[0]
                if isinstance(prefetched, tuple)
                else prefetched.batch_id
                if prefetched is not None
                else None
            )
            if number is not None and number not in self.instance.clients.outstanding(self._client_id):
                return None  # its position was set meanwhile, or it was forgotten
        return self._render_or_roll_back(*prefetched, _ONE_ENTRY) if isinstance(prefetched, tuple) else prefetched

    def _render_or_roll_back(self, batch_id: int, batch: Batch, size: BatchSize) -> RenderedBatch | None:
        """Render a batch, or return None if the client sees nothing in it. If rendering fails, the batch is rolled
        back."""
        with self._lock:
            try:
                return self._render(batch_id, batch, size)
            except PenstockError:
                self._hidden.clear()
                self.instance.clients.rollback(self._client_id)
                raise

    def _render(self, batch_id: int, batch: Batch, size: BatchSize) -> RenderedBatch | None:
        """Render a batch. One in which the client sees nothing is acked for it, and None is returned."""
        filters = self._present_filters
        if not all(map(operator.is_, filters, self._filters)):  # one was reloaded
            self._entries, self._filters = self._make_renderers(self._text), filters
        names = batch.members if isinstance(batch, GroupBatch) else repeat(_NO_MEMBER)
        rendered = [
            self._entries[name].encode_block(part)
            for name, block in zip(names, batch.blocks, strict=False)
            for part in block.split(_RENDER_BYTES)
        ]
        chunks = tuple(entries.data for entries in rendered if len(entries))
        if chunks:
            delivered = (
                sum(map(len, batch.blocks)) if size.unit == "items" else sum(block.size_bytes for block in batch.blocks)
            )
            return RenderedBatch(
                batch_id, chunks, 2 * delivered >= (size.count if size.unit == "items" else size.bytes)
            )
        self._hidden.add(batch_id)
        self._ack_hidden_batches()
        return None

    def ack(self, batch_id: int) -> None:
        """Ack the first outstanding batch."""
        with self._lock:
            self.instance.clients.ack(self._client_id, batch_id)
            self._ack_hidden_batches()

    def _ack_hidden_batches(self) -> None:
        """Ack batches in which the client sees nothing, as soon as those before them are acked."""
        clients = self.instance.clients
        while (ids := clients.outstanding(self._client_id)) and ids[0] in self._hidden:
            clients.ack(self._client_id, ids[0])
            self._hidden.discard(ids[0])

    def rollback(self, batch_id: int | None) -> None:
        """Let the outstanding batches be redelivered."""
        with self._lock:
            self._hidden.clear()
            self._prefetched = None
            self.instance.clients.rollback(self._client_id, batch_id)
