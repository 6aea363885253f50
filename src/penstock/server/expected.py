"""What is configured and does not run yet: whoever asks for such a destination is told to try again."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.errors import ConfigurationError, PenstockError, StartingError


@dataclass(frozen=True, slots=True)
class ExpectedDestinations:
    """The destinations that a server is configured to run and does not run yet.

    `starting` says for each why its last try failed, and nothing before that. `wrong` are those whose settings keep
    them from being tried. `unread` is None once the configuration was read; until then any name may be in it.
    """

    starting: Mapping[str, str] = field(default_factory=dict[str, str])
    wrong: Mapping[str, str] = field(default_factory=dict[str, str])
    unread: str | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is configured beside what runs."""
        return not self.starting and not self.wrong and self.unread is None

    def explain_absence(self, destination: str) -> PenstockError | None:
        """Return the error for a client that asks for a destination which does not run; None when it is not
        configured."""
        if self.unread is not None:
            reason = self.unread or "its configuration has not been read yet"
            return StartingError(f"this server is starting, try again: {reason}")
        if destination in self.starting:
            return make_starting_error(destination, self.starting[destination])
        if destination in self.wrong:
            problem = self.wrong[destination]
            return ConfigurationError(f"destination '{destination}' does not run, its settings are wrong: {problem}")
        return None


def make_starting_error(destination: str, problem: str = "") -> StartingError:
    """Return the error for a client that asks for a destination which is still starting: it is told to try again."""
    reason = f": {problem}" if problem else ""
    return StartingError(f"destination '{destination}' is starting, try again{reason}")
