"""Subscriptions and cursors in a file; outstanding batches are forgotten at a restart and redelivered.

The file is canal's `meta.dat` with additional fields: `epoch` beside each cursor, `fence`, `generation` and `checksum`.
It is replaced as a whole: a new file is synced and then renamed, and the previous one is retained as
`meta.dat.previous`. So a crash leaves one of the two intact.
"""

import json
import logging
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from penstock.disk import FileLock, replace_file
from penstock.errors import FencedError, MetaError, MetaInUseError, PenstockError
from penstock.meta.cursor import Cursor
from penstock.meta.record import ClientRecord

log = logging.getLogger(__name__)


class FileMetaBackend:
    """Persists records in `meta.dat`, which one process at a time has, from `load` on. `fence` is the epoch of the term
    of this server, and a file with a higher one is refused; an error that `check` raises before a write refuses the
    write.

        backend = FileMetaBackend("shop", data_dir / "shop")
        meta = PersistentMetaManager("shop", backend, period_s=1.0)
    """

    def __init__(
        self,
        destination: str,
        folder: Path,
        *,
        fence: int | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.destination = destination
        self.path = folder / destination / "meta.dat"
        self.previous = self.path.with_name("meta.dat.previous")
        self._fence, self._check = fence, check
        self._generation = 0
        self._is_present_whole = False  # else the previous file is not replaced by it
        self._records: dict[int, ClientRecord] = {}
        self._lock = FileLock(self.path.with_name("meta.lock"))

    def _claim(self) -> None:
        if self._lock.is_held:
            return
        try:
            self._lock.acquire()
        except BlockingIOError:
            raise self._in_use() from None
        except OSError as error:
            raise MetaError(f"{self.path.parent} cannot be written: {error.strerror}") from None

    def check_not_in_use(self) -> None:
        """Raise MetaInUseError when another process has the file; nothing is made or taken."""
        try:
            is_taken = self._lock.is_taken()
        except OSError as error:
            raise MetaError(f"{self.path.parent} cannot be read: {error.strerror}") from None
        if is_taken:
            raise self._in_use()

    def _in_use(self) -> MetaInUseError:
        return MetaInUseError(f"{self.path} is in use by another process: a server that runs; stop it first")

    def save(self, changed: Iterable[ClientRecord]) -> None:
        """Replace the file by one with these records changed; records that are forgotten are left out. Raises MetaError
        when the file cannot be written, or `load` has not claimed it."""
        if not self._lock.is_held:
            raise MetaError(f"{self.path} is not ours: it may be another process's by now")
        self._check()
        after = self._records | {record.client_id: record for record in changed}
        after = {client_id: record for client_id, record in after.items() if not record.is_forgotten}
        try:
            replace_file(self.path, self._encode(after), previous=self.previous if self._is_present_whole else None)
        except OSError as error:
            raise MetaError(f"{self.path} cannot be written: {error.strerror}") from None
        self._records, self._is_present_whole = after, True
        self._generation += 1

    def close(self) -> None:
        """Release the file for other processes."""
        self._lock.release()

    def _encode(self, records: dict[int, ClientRecord]) -> bytes:
        clients = [
            {"clientIdentity": {"clientId": record.client_id, "destination": self.destination, "filter": record.filter}}
            | ({"cursor": record.cursor.to_json()} if record.cursor else {})
            | ({} if record.is_subscribed else {"subscribed": False})
            | ({"batchIdsUntil": record.ids_until} if record.ids_until else {})
            for record in sorted(records.values(), key=lambda record: record.client_id)
        ]
        fields = {
            "clientDatas": clients,
            "destination": self.destination,
            "fence": self._fence or 0,
            "generation": self._generation + 1,
        }
        return json.dumps(fields | {"checksum": _checksum(fields)}, separators=(",", ":"), sort_keys=True).encode()

    def load(self) -> list[ClientRecord]:
        """Claim the file for this process and return its records. Raises MetaInUseError when another process has it,
        MetaError when it cannot be read, FencedError when a later term has written it."""
        self._claim()
        try:
            return self.read_records()
        except PenstockError:
            self.close()
            raise

    def read_records(self) -> list[ClientRecord]:
        """Return the records in the file without locking or opening it for writing."""
        if not self.path.exists():
            return []  # as before the first start, or after somebody has removed it
        content = self._read(self.path)
        self._is_present_whole = content is not None
        if content is None:
            content = self._read(self.previous)
            if content is None:
                raise MetaError(
                    f"{self.path} cannot be read, and there is no other: put a copy in its place, or remove it to begin"
                    " without cursors"
                )
            log.warning(
                "cursor file damaged destination=%s file=%s previous=%s: cursors are read from the previous file",
                self.destination, self.path, self.previous,
            )  # fmt: skip
        fence = content.get("fence") or 0
        if self._fence is None:
            self._fence = fence
        if fence > self._fence:
            raise FencedError(
                f"{self.path} was written by a server of epoch {fence}, and this one is of {self._fence}: it has been"
                " replaced"
            )
        self._generation = int(content.get("generation") or 0)
        self._records = {record.client_id: record for record in map(_record, content["clientDatas"])}
        return list(self._records.values())

    def _read(self, path: Path) -> dict[str, Any] | None:
        """Return the content of a file; None when it does not exist or is damaged."""
        try:
            content: dict[str, Any] = json.loads(path.read_bytes())
            checksum = content.pop("checksum", None)
            is_whole = checksum is None or checksum == _checksum(content)
            numbers = (content.get("fence") or 0, content.get("generation") or 0)
            are_clients = all(map(_record, content["clientDatas"]))
            return content if is_whole and are_clients and all(isinstance(number, int) for number in numbers) else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, MetaError):
            return None


def _record(client: dict[str, Any]) -> ClientRecord:
    identity: dict[str, Any] = client["clientIdentity"]
    record = ClientRecord(int(identity["clientId"]), str(identity.get("filter") or ""))
    record.is_subscribed = client.get("subscribed", True)
    record.cursor = Cursor.from_json(client["cursor"]) if client.get("cursor") else None
    record.ids_until = int(client.get("batchIdsUntil") or 0)
    return record


def _checksum(fields: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(fields, separators=(",", ":"), sort_keys=True).encode())
