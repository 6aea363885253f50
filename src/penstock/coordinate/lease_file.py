"""A lease as the other processes of one machine see it: until when it lasts, and whether who has it is alive.

Workers of a process have no session with ZooKeeper of their own: they read from the file whether they may still write.
The kernel holds a lock on it until the process that has the lease ends, however it does. So another process of the same
machine need not wait for the end of its session with ZooKeeper.

offset 0   the end of the lease by `boot_clock`, 8 bytes, so that it is replaced as a whole
offset 8   the machine's boot, as text: locks and that clock mean something only within it
"""

import struct
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from penstock.coordinate.fence import Fence
from penstock.coordinate.lease import Clock, boot_clock
from penstock.disk import FileLock
from penstock.errors import ConfigurationError, FencedError

_END = struct.Struct("<d")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PUBLISH_S = 0.2
_JOIN_S = 5.0


@dataclass(frozen=True, slots=True)
class LeaseFile:
    """The published lease of another process; it can be pickled.

    LeaseFile(path).require()  # before each write
    """

    path: Path
    clock: Clock = boot_clock

    def require(self) -> None:
        """Raise FencedError if the lease has ended, or the process that has it."""
        content = self._read()
        if content is None or self.clock() >= content[0] or not FileLock(self.path).is_taken():
            raise FencedError(f"{self.path.stem}: the driver has ended or has lost its lease, another may run by now")

    def has_died(self) -> bool:
        """Return whether the process that published the lease is known to have ended: it ran on this machine, and its
        lock is gone. False also means that nothing is known of it."""
        content = self._read()
        return content is not None and content[1] == _boot_id() != "" and not FileLock(self.path).is_taken()

    def _read(self) -> tuple[float, str] | None:
        """Return the end of the lease, and the boot of the machine; None while they are not written."""
        try:
            raw = self.path.read_bytes()
        except OSError:
            return None
        return (_END.unpack_from(raw)[0], raw[_END.size :].decode()) if len(raw) > _END.size else None


class LeasePublisher:
    """Publishes the lease of a fence in a file, from `start` to `close`, in a thread of its own.

    with LeasePublisher(path, fence):
        run_workers(LeaseFile(path))
    """

    def __init__(self, path: Path, fence: Fence) -> None:
        self._lock, self._fence = FileLock(path), fence
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"penstock-lease-{path.stem}", daemon=True)

    def start(self) -> None:
        """Lock the file, and publish the lease from now on. Raises ConfigurationError when it cannot be written."""
        try:
            self._lock.acquire()
            self._lock.write_at(0, _END.pack(self._fence.held_until) + _boot_id().encode())
        except OSError as error:
            self._lock.release()
            raise ConfigurationError(f"cannot keep a lease in {self._lock.path}: {error.strerror}") from None
        self._thread.start()

    def close(self) -> None:
        """End the published lease, and give the lock back."""
        self._closing.set()
        self._thread.join(_JOIN_S)
        with suppress(OSError):
            self._lock.write_at(0, _END.pack(0.0))
        self._lock.release()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        while not self._closing.wait(_PUBLISH_S):
            with suppress(OSError):  # workers stop when the lease that they know of has ended
                self._lock.write_at(0, _END.pack(self._fence.held_until))


def _boot_id() -> str:
    """Return what tells the boots of all machines apart; empty where the system does not say it."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
