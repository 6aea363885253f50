"""Subscriptions, batches and cursors in ZooKeeper, where canal has them and as canal writes them.

/otter/canal/destinations/{destination}/{client}/filter, …/cursor, …/mark/{batch id, ten digits}; and for clients that
have left, which canal would forget: /otter/canal/destinations/{destination}/left/{client}
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.coordinate import Fence, Tree
from penstock.errors import MetaError
from penstock.meta.cursor import Cursor
from penstock.meta.record import BatchRange, ClientRecord

ROOT = "/otter/canal/destinations"
_LEFT = "left"
_RANGE_TYPE = "com.alibaba.otter.canal.protocol.position.PositionRange"


class ZooKeeperMetaBackend:
    """Persists records in ZooKeeper nodes, as canal lays them out. Writes carry a fence: a server that was replaced can
    no longer write.

        backend = ZooKeeperMetaBackend("shop", ZooKeeperTree("zk1:2181"))
        meta = PersistentMetaManager("shop", backend, period_s=None)
    """

    def __init__(self, destination: str, tree: Tree, *, fence: Fence | None = None, with_batches: bool = True) -> None:
        self._root = f"{ROOT}/{destination}"
        self._tree, self._fence, self._with_batches = tree, fence, with_batches
        self._written: dict[int, dict[str, bytes]] = {}

    def load(self) -> list[ClientRecord]:
        """Return the records of all clients. A client that has a node has subscribed, as in canal; cursors of clients
        that have unsubscribed are under another node."""
        records = [self._read_record(int(name)) for name in self._tree.children(self._root) if name.isdecimal()]
        client_ids = {record.client_id for record in records}
        for name in self._tree.children(f"{self._root}/{_LEFT}"):
            path = f"{self._root}/{_LEFT}/{name}"
            cursor = self._tree.read(path)
            if cursor and name.isdecimal() and int(name) not in client_ids:
                records.append(ClientRecord(int(name), cursor=Cursor.from_json(_json(cursor[0]))))
                self._written[int(name)] = {path: cursor[0]}
        return records

    def _read_record(self, client_id: int) -> ClientRecord:
        path = f"{self._root}/{client_id}"
        paths = [path, f"{path}/filter", f"{path}/cursor", f"{path}/ids", f"{path}/mark"]
        paths += [f"{path}/mark/{name}" for name in self._tree.children(f"{path}/mark") if name.isdecimal()]
        nodes = {node: content[0] for node in paths if (content := self._tree.read(node)) is not None}
        self._written[client_id] = nodes
        record = ClientRecord(client_id, nodes.get(f"{path}/filter", b"").decode(), is_subscribed=True)
        record.cursor = Cursor.from_json(_json(raw)) if (raw := nodes.get(f"{path}/cursor")) else None
        record.ids_until = int(nodes.get(f"{path}/ids") or b"0")
        for mark in paths[5:]:
            record.last_id = int(mark.rpartition("/")[2])
            record.batches[record.last_id] = _parse_range(_json(nodes[mark]))
        return record

    def save(self, changed: Iterable[ClientRecord]) -> None:
        """Write what has changed in these records to their nodes, one transaction for each client. Raises FencedError
        when another server has claimed the destination."""
        for record in changed:
            before, after = self._written.get(record.client_id, {}), self._nodes(record)
            gone = sorted((path for path in before if path not in after), reverse=True)  # children first
            changes: dict[str, bytes | None] = dict.fromkeys(gone)
            changes |= {path: value for path, value in after.items() if before.get(path) != value}
            if changes:
                self._tree.commit(changes, self._fence.check if self._fence else None)
            self._written[record.client_id] = after

    def _nodes(self, record: ClientRecord) -> dict[str, bytes]:
        """Return the nodes of a record with their values, parents first."""
        cursor = {} if record.cursor is None else {"cursor": _text(record.cursor.to_json(with_type=True))}
        if not record.is_subscribed:
            return {f"{self._root}/{_LEFT}/{record.client_id}": value for value in cursor.values()}
        path = f"{self._root}/{record.client_id}"
        nodes = {path: b""} | {f"{path}/{name}": value for name, value in cursor.items()}
        if record.ids_until:
            nodes[f"{path}/ids"] = str(record.ids_until).encode()
        if record.filter:
            nodes[f"{path}/filter"] = record.filter.encode()
        if self._with_batches and (record.batches or f"{path}/mark" in self._written.get(record.client_id, {})):
            nodes[f"{path}/mark"] = b""
            for batch_id, batch in record.batches.items():
                nodes[f"{path}/mark/{batch_id:010}"] = _text(_range_json(batch))
        return nodes

    def close(self) -> None:
        """Close the connection to ZooKeeper."""
        self._tree.close()


def _range_json(batch: BatchRange) -> dict[str, Any]:
    cursors = {"ack": batch.ack, "end": Cursor(batch.end), "start": Cursor(batch.start)}
    fields = {name: cursor.to_json(with_type=True) for name, cursor in cursors.items() if cursor is not None}
    return {"@type": _RANGE_TYPE, **fields, "endSeq": batch.end_sequence}


def _parse_range(value: Mapping[str, Any]) -> BatchRange:
    def cursor_of(name: str) -> Cursor | None:
        return Cursor.from_json(value[name]) if value.get(name) else None

    start, end = cursor_of("start"), cursor_of("end")
    if start is None or end is None:
        raise MetaError(f"this is no batch: {value!r}")
    return BatchRange(start.position, end.position, int(value.get("endSeq", -1)), cursor_of("ack"))


def _text(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _json(raw: bytes) -> Mapping[str, Any]:
    try:
        return json.loads(raw)
    except ValueError:
        raise MetaError(f"this is no JSON: {raw[:80]!r}") from None
