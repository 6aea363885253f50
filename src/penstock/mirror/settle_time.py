"""How long a change may take to reach a mirror, where nothing tells how far that is."""

import threading

from penstock.model import LogRequirement


class MirrorSettleTime:
    """Takes changes for applied after a time.

    progress = MirrorSettleTime(10, stopped)
    """

    def __init__(self, settle_s: float, stopped: threading.Event) -> None:
        self._settle_s, self._stopped = settle_s, stopped

    def find_requirement(self) -> LogRequirement | None:
        """Return nothing: the database that is read is the one that was named."""
        return None

    def wait_applied(self) -> str:
        """Wait for as long as a change may take to reach the mirror."""
        return "it was stopped" if self._stopped.wait(self._settle_s) else ""
