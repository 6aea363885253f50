"""A manager that persists its records: in a file, or in ZooKeeper.

A change of a cursor is persisted `before` it takes effect, or afterwards: `soon`, or every period. After a crash the
persisted cursor is at most that much older, and the client receives the difference again. A subscription is persisted
at once: a client that is unknown after a crash would miss what came since. At stop everything is persisted once more.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Protocol

from penstock.disk import WriteWarnings
from penstock.errors import CoordinationError, FencedError, MetaError
from penstock.meta.cursor import Cursor
from penstock.meta.manager import MetaManager
from penstock.meta.record import ClientRecord

log = logging.getLogger(__name__)
_JOIN_S = 10.0
_RETRY_S = 1.0  # after an error


class MetaBackend(Protocol):
    """The storage in which a manager persists its records: a file, or ZooKeeper."""

    def load(self) -> list[ClientRecord]:
        """Return the persisted records of all clients. Raises MetaError, CoordinationError or FencedError."""
        ...

    def save(self, changed: Iterable[ClientRecord]) -> None:
        """Persist these records. Raises MetaError, CoordinationError or FencedError; some of the records may be
        persisted then."""
        ...

    def close(self) -> None:
        """Close what was opened to persist records, such as a locked file or a connection."""
        ...


class PersistentMetaManager(MetaManager):
    """Persists the changes of its records with a backend: before they take effect when `period_s` is None, soon when it
    is 0, else every `period_s` seconds.

        meta = PersistentMetaManager("shop", FileMetaBackend("shop", folder), period_s=1.0)
        meta.start()
    """

    def __init__(self, destination: str, backend: MetaBackend, *, period_s: float | None) -> None:
        super().__init__(destination)
        self.persists_later = period_s is not None
        self.problem = ""  # why the last attempt to persist something failed
        self._backend = backend
        self._period_s = period_s
        self._dirty: dict[int, ClientRecord] = {}
        self._wakes = threading.Condition(self._lock)
        self._saving = threading.Lock()
        self._is_stopping = False
        self._fenced: FencedError | None = None  # set when another server has taken over: no change is taken any more
        self.on_fenced: Callable[[FencedError], None] = lambda _: None  # called once, without any lock
        self._thread: threading.Thread | None = None
        self._warnings = WriteWarnings(
            log,
            f"cursors not persisted destination={destination}",
            f"cursors persisted again destination={destination}",
        )

    def start(self) -> None:
        """Load the persisted records and, unless changes are persisted before they take effect, start the thread that
        persists them."""
        for record in self._backend.load():
            record.reserve_ids()
            self._records[record.client_id] = record
        try:
            if self._records:
                self._backend.save(self._records.values())  # with the ids that may be given out from now on
        except (MetaError, CoordinationError) as error:
            if self._period_s is None:
                raise
            log.warning(
                "cursors not persisted, retrying destination=%s reason=%s: until then, a crash redelivers acked"
                " batches",
                self.destination,
                error,
            )
            self._dirty = dict(self._records)
        if self._period_s is not None:
            name = f"penstock-meta-{self.destination}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Persist what is not persisted yet, unless another server has taken over, and close the backend."""
        with self._lock:
            self._is_stopping = True
            self._wakes.notify_all()
        if self._thread is not None:
            self._thread.join(_JOIN_S)
        try:
            if self._fenced is None:
                self.flush()
        finally:
            self._backend.close()

    # -- persisted at once

    def subscribe(self, client_id: int, table_filter: str = "", cursor: Cursor | None = None) -> None:
        """Subscribe a client, or replace its filter, and persist that at once; if it cannot be persisted, nothing
        changes. A client that has a cursor already keeps it."""
        self._persist_at_once(
            client_id, lambda: super(PersistentMetaManager, self).subscribe(client_id, table_filter, cursor)
        )

    def unsubscribe(self, client_id: int) -> None:
        """End a client's subscription and drop its batches, and persist that at once; if it cannot be persisted,
        nothing changes. The cursor stays."""
        self._persist_at_once(client_id, lambda: super(PersistentMetaManager, self).unsubscribe(client_id))

    def forget(self, client_id: int) -> None:
        """Remove a client with its cursor, and persist that at once; if it cannot be persisted, nothing changes."""
        self._persist_at_once(client_id, lambda: super(PersistentMetaManager, self).forget(client_id))

    def _persist_at_once(self, client_id: int, change: Callable[[], None]) -> None:
        """Persist a change before it takes effect; if that fails, the change is undone."""
        with self._lock:
            before = self._records.get(client_id)
            change()
        try:
            self.flush()
        except Exception:
            with self._lock:
                self._records.pop(client_id, None)
                if before is not None:
                    self._records[client_id] = before
                self._dirty[client_id] = before or ClientRecord(client_id)
                self._wakes.notify_all()
            raise

    def _persist(self, record: ClientRecord) -> None:
        if self._is_stopping:
            raise MetaError(f"the cursors of '{self.destination}' are no longer ours: the instance was stopped")
        if self._fenced is not None:
            raise self._fenced
        if self._period_s is None:
            try:
                self._backend.save([record])
            except FencedError as error:
                self._fenced = error
                name = f"penstock-fenced-{self.destination}"
                threading.Thread(target=self.on_fenced, args=(error,), name=name, daemon=True).start()
                raise
        else:
            self._dirty[record.client_id] = record
            self._wakes.notify_all()

    def _run(self) -> None:
        while True:
            with self._lock:
                while not (self._dirty or self._is_stopping):
                    self._wakes.wait()
                if not self._is_stopping and self._period_s:
                    self._wakes.wait_for(lambda: self._is_stopping, self._period_s)
                if self._is_stopping:
                    return
            try:
                self.flush()
            except FencedError as error:
                log.error(  # noqa: TRY400
                    "destination taken over by another server destination=%s reason=%s: it stops on this server, and"
                    " its cursors are no longer written here",
                    *(self.destination, error),
                )
                with self._lock:
                    self._fenced = error
                self.on_fenced(error)
                return
            except Exception as error:  # noqa: BLE001 - whatever it is, the next attempt may succeed
                self._warnings.report_failure(error)
                with self._lock:
                    self._wakes.wait_for(lambda: self._is_stopping, _RETRY_S)

    def flush(self) -> None:
        """Persist what has changed; what cannot be persisted is tried again later."""
        with self._saving:
            with self._lock:
                dirty, self._dirty = self._dirty, {}
            if not dirty:
                return
            try:
                self._backend.save(dirty.values())
                self.problem = ""
                self._warnings.report_success()
                for record in dirty.values():
                    if record.cursor is not None and self.on_persisted is not None:
                        self.on_persisted(record.client_id, record.cursor)
            except Exception as error:
                self.problem = str(error)
                with self._lock:
                    self._dirty = dirty | self._dirty
                    self._wakes.notify_all()  # the thread may have found nothing to persist meanwhile
                raise
