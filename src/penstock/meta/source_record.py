"""The source record of an instance: which server's log it follows, and in which epoch. It is persisted, so that a
replaced server is noticed.

The epoch rises when the log is reset or replaced by another server's, and is persisted before anything of the new log
is. It never falls.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from penstock.coordinate import Fence, Tree
from penstock.disk import replace_file
from penstock.errors import MetaError
from penstock.meta.zookeeper_backend import ROOT
from penstock.model import FileIdentity

_FILES = 500  # how many files are remembered, the newest


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """The log that an instance follows: its epoch, the address and the uuid of its server, and the identities of its
    newest files.

    record = SourceRecord(epoch=1, address="db1:3306")
    record = record.with_file(identity)
    """

    epoch: int = 0
    address: str = ""  # of the server from which the log was read last
    server: str = ""  # its uuid; MariaDB has none
    files: Mapping[str, FileIdentity] = field(default_factory=dict[str, FileIdentity])  # by file, in their order
    by_gtids: bool = False  # GTIDs of the epoch before mean the same in this one, whose order may be another
    is_reset: bool = False  # this log was reset, and what is not in it is known to be gone

    def with_file(self, identity: FileIdentity) -> "SourceRecord":
        """Return this record with the identity of one more file, as the newest; only the newest files are retained."""
        files = {name: known for name, known in self.files.items() if name != identity.file} | {identity.file: identity}
        return replace(self, files=dict(list(files.items())[-_FILES:]))

    def to_json(self) -> dict[str, Any]:
        """Return the record as an object for JSON."""
        return {
            "epoch": self.epoch,
            "address": self.address,
            "server": self.server,
            "by_gtids": self.by_gtids,
            "anew": self.is_reset,
            "files": [[identity.file, identity.began, identity.server_id] for identity in self.files.values()],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "SourceRecord":
        """Return the record from an object that `to_json` returned."""
        files = {str(file): FileIdentity(str(file), int(began), int(owner)) for file, began, owner in value["files"]}
        flags = bool(value["by_gtids"]), bool(value.get("anew", False))
        return cls(int(value["epoch"]), str(value["address"]), str(value["server"]), files, *flags)


class SourceRecords(Protocol):
    """Loads and saves the source record of one destination. Both methods raise MetaError, CoordinationError or
    FencedError."""

    def load(self) -> SourceRecord:
        """Return the record that was saved last; an empty one when there is none."""
        ...

    def save(self, record: SourceRecord) -> None:
        """Save the record: epoch, address and uuid of the server, and the identities of its log files."""
        ...


class MemorySourceRecords:
    """Holds the source record in memory; it is lost with the process.

    records = MemorySourceRecords()
    records.save(SourceRecord(epoch=1))
    """

    def __init__(self) -> None:
        self._record = SourceRecord()

    def load(self) -> SourceRecord:
        """Return the record that this process has saved last; an empty one before the first."""
        return self._record

    def save(self, record: SourceRecord) -> None:
        """Remember the record until the process ends."""
        self._record = record


class FileSourceRecords:
    """Persists the source record in `source.json` beside `meta.dat`; the file is replaced as a whole.

    records = FileSourceRecords("shop", data_dir / "shop")
    epoch = records.load().epoch
    """

    def __init__(self, destination: str, folder: Path) -> None:
        self.path = folder / destination / "source.json"

    def load(self) -> SourceRecord:
        """Return the record in the file; an empty one when the file does not exist. Raises MetaError when it cannot be
        read."""
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return SourceRecord()
        except OSError as error:
            raise MetaError(f"{self.path} cannot be read: {error.strerror}") from None
        return _parse_record(raw, str(self.path))

    def save(self, record: SourceRecord) -> None:
        """Replace the file by one with this record. Raises MetaError when it cannot be written."""
        try:
            replace_file(self.path, json.dumps(record.to_json()).encode())
        except OSError as error:
            raise MetaError(f"{self.path} cannot be written: {error.strerror}") from None


class ZooKeeperSourceRecords:
    """Persists the source record in the node /otter/canal/destinations/{destination}/source.

    records = ZooKeeperSourceRecords("shop", ZooKeeperTree("zk1:2181"))
    epoch = records.load().epoch
    """

    def __init__(self, destination: str, tree: Tree, *, fence: Fence | None = None) -> None:
        self._path = f"{ROOT}/{destination}/source"
        self._tree, self._fence = tree, fence

    def load(self) -> SourceRecord:
        """Return the record in the node; an empty one when the node does not exist or is empty."""
        node = self._tree.read(self._path)
        return _parse_record(node[0], self._path) if node and node[0] else SourceRecord()

    def save(self, record: SourceRecord) -> None:
        """Write the record into the node. Raises FencedError when another server has claimed the destination."""
        raw = json.dumps(record.to_json(), separators=(",", ":")).encode()
        self._tree.commit({self._path: raw}, self._fence.check if self._fence else None)


def _parse_record(raw: bytes, where: str) -> SourceRecord:
    try:
        return SourceRecord.from_json(json.loads(raw))
    except (ValueError, KeyError, TypeError):
        raise MetaError(
            f"{where} does not say which log was followed, but {raw[:80]!r}: put a copy in its place; without one,"
            " raise `epoch` of the instance above any that was used, and remove it"
        ) from None
