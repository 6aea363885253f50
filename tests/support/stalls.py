"""Whether a peer that does not read has stalled the one that sends to it: what tests of slow readers wait for."""

import time
from collections.abc import Callable
from pathlib import Path

from penstock.testing import poll_until

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_STILL_S = 0.3  # on loopback, bytes that can travel do so in microseconds


def unsent_bytes(from_port: int, to_port: int) -> int:
    """Return how many bytes lie in the sending buffer of the TCP connection between two ports of this machine."""
    for table in _TABLES:
        path = Path(table)
        for line in path.read_text(encoding="ascii").splitlines()[1:] if path.exists() else ():
            _, local, remote, _, queues, *_ = line.split()
            if (_port(local), _port(remote)) == (from_port, to_port):
                return int(queues.partition(":")[0], 16)
    return 0


def wait_until_stalled(progress: Callable[[], int | None], timeout_s: float = 30) -> bool:
    """Wait until `progress` returns the same number over some time, and say whether it came to that.

    It returns None while the sender has nothing to send: that is no stall.
    """

    def is_still() -> bool:
        before = progress()
        if before is None:
            return False
        time.sleep(_STILL_S)
        return progress() == before

    return poll_until(is_still, timeout_s)


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)
