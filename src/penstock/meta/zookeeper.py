"""Subscriptions, batches and cursors in ZooKeeper, where canal has them and as canal writes them.

/otter/canal/destinations/{destination}/{client}/filter, …/cursor, …/mark/{batch id, ten digits}
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.coordinate import Fence, Tree
from penstock.errors import MetaError
from penstock.meta.cursor import Cursor
from penstock.meta.record import BatchRange, ClientRecord

ROOT = "/otter/canal/destinations"
_RANGE_TYPE = "com.alibaba.otter.canal.protocol.position.PositionRange"


class ZooKeeperKeeper:
    """With a fence, a server that was replaced cannot write any more."""

    def __init__(self, destination: str, tree: Tree, *, fence: Fence | None = None, with_batches: bool = True) -> None:
        self._root = f"{ROOT}/{destination}"
        self._tree, self._fence, self._with_batches = tree, fence, with_batches
        self._written: dict[int, dict[str, bytes]] = {}

    def load(self) -> list[ClientRecord]:
        found = [self._record(int(name)) for name in self._tree.children(self._root) if name.isdecimal()]
        self._written = {record.client_id: self._nodes(record) for record in found}
        return found

    def _record(self, client_id: int) -> ClientRecord:
        path = f"{self._root}/{client_id}"
        table_filter, cursor = self._tree.read(f"{path}/filter"), self._tree.read(f"{path}/cursor")
        record = ClientRecord(client_id, is_subscribed=table_filter is not None)
        record.filter = table_filter[0].decode() if table_filter else ""
        record.cursor = Cursor.from_json(_json(cursor[0])) if cursor and cursor[0] else None
        for name in self._tree.children(f"{path}/mark"):
            mark = self._tree.read(f"{path}/mark/{name}")
            if mark and name.isdecimal():
                record.batches[int(name)] = _range_of(_json(mark[0]))
                record.last_id = int(name)
        return record

    def save(self, changed: Iterable[ClientRecord]) -> None:
        for record in changed:
            before, after = self._written.get(record.client_id, {}), self._nodes(record)
            changes: dict[str, bytes | None] = {path: None for path in before if path not in after}
            changes |= {path: value for path, value in after.items() if before.get(path) != value}
            if changes:
                self._tree.commit(changes, self._fence.check if self._fence else None)
            self._written[record.client_id] = after

    def _nodes(self, record: ClientRecord) -> dict[str, bytes]:
        path = f"{self._root}/{record.client_id}"
        nodes: dict[str, bytes] = {}
        if record.is_subscribed:
            nodes[f"{path}/filter"] = record.filter.encode()
        if record.cursor is not None:
            nodes[f"{path}/cursor"] = _text(record.cursor.to_json(with_type=True))
        if self._with_batches:
            for batch_id, batch in record.batches.items():
                nodes[f"{path}/mark/{batch_id:010}"] = _text(_range_json(batch))
        return nodes

    def close(self) -> None:
        self._tree.close()


def _range_json(batch: BatchRange) -> dict[str, Any]:
    places = {"ack": batch.ack, "end": Cursor(batch.end), "start": Cursor(batch.start)}
    found = {name: place.to_json(with_type=True) for name, place in places.items() if place is not None}
    return {"@type": _RANGE_TYPE, **found, "endSeq": batch.end_sequence}


def _range_of(value: Mapping[str, Any]) -> BatchRange:
    def place(name: str) -> Cursor | None:
        return Cursor.from_json(value[name]) if value.get(name) else None

    start, end = place("start"), place("end")
    if start is None or end is None:
        raise MetaError(f"this is no batch: {value!r}")
    return BatchRange(start.position, end.position, int(value.get("endSeq", -1)), place("ack"))


def _text(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _json(raw: bytes) -> Mapping[str, Any]:
    try:
        return json.loads(raw)
    except ValueError:
        raise MetaError(f"this is no JSON: {raw[:80]!r}") from None
