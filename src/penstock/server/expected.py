"""Destinations that are configured and do not run yet: a client that asks for one gets an error that says to try
again."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.errors import ConfigurationError, PenstockError, StartingError


@dataclass(frozen=True, slots=True)
class ExpectedDestinations:
    """The destinations that a server is configured to run and does not run yet.

    `starting` are those that are being started, each with the error of its last failed attempt, empty before there is
    one. `wrong` are those that are not started because their settings are invalid, each with the error. `unread` is set
    until the configuration was read for the first time, to the error if it could not be read: until then nobody knows
    which destinations there are. It is None afterwards.
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
