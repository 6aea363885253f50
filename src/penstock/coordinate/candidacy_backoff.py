"""The delays between the attempts of one server to run a destination. No I/O; `now` is passed in."""

from dataclasses import dataclass

from penstock.backoff import Backoff


@dataclass(frozen=True, slots=True)
class ElectionSettings:
    """The times for which the servers of an election wait for each other, in seconds.

    settings = ElectionSettings(delay_s=1.0, grace_s=10.0)
    """

    delay_s: float = 1.0  # how long another server waits after a crash before it takes over
    grace_s: float = 10.0  # how long a server that released the destination leaves it to the others
    pause_s: float = 1.0  # after a start that failed; twice as long after the next
    longest_pause_s: float = 30.0
    stop_limit_s: float = 10.0  # for `on_stopped`; after that the running node is removed all the same
    poll_s: float = 5.0  # between two reads of ZooKeeper, when no watch fires


class CandidacyBackoff:
    """Decides when one server may try again to run one destination, after it failed to start the destination or
    released it."""

    def __init__(self, address: str, settings: ElectionSettings) -> None:
        self.owner: str | None = None  # the address of the running server, as seen last
        self.until = 0.0  # no attempt before this, because one has failed here
        self.grace_until = 0.0  # others go first until then, because this server released the destination
        self._address, self._settings = address, settings
        self._backoff = Backoff(settings.pause_s, settings.longest_pause_s)
        self._vacant_since: float | None = None
        self._failures = 0

    def note_owner(self, owner: str) -> None:
        """Note that a server runs the destination."""
        self.owner, self._vacant_since = owner, None
        if owner != self._address:
            self.grace_until = 0.0

    def note_vacancy(self, now: float) -> float:
        """Note that no server runs the destination; return since when that is known."""
        self.owner = None
        if self._vacant_since is None:
            self._vacant_since = now
        return self._vacant_since

    def note_release(self, now: float) -> None:
        """Note that this server has released the destination: for `grace_s` the other servers may take it first."""
        self.owner = None
        self.grace_until = now + self._settings.grace_s

    def note_failure(self, now: float) -> None:
        """Note that the destination failed on this server: the delay doubles with each failure, up to a limit."""
        if now > self.until + self._settings.longest_pause_s:
            self._failures = 0  # the last one is long ago
        self._failures += 1
        self.until = now + self._backoff.delay_s(self._failures)

    def pause(self, now: float) -> None:
        """Do not try for the destination during one pause, without counting a failure."""
        self.until = max(self.until, now + self._settings.pause_s)

    def left_s(self, now: float) -> float:
        """Return how long this server still has to wait because of a failure or a pause."""
        return max(0.0, self.until - now)
