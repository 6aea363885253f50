"""The interface by which a sync job says what it does; `penstock sync` prints it."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from penstock.spark.sync_progress import SyncReport


@dataclass(frozen=True, slots=True)
class DriverStatus:
    """The state of a process that drives its pipeline, or stands by for the one that does."""

    state: Literal["running", "standby"]
    pipeline: str
    address: str  # of this process
    term: int | None = None  # in which it runs
    running: str | None = None  # the address of the process that runs, as far as it is known
    reason: str = ""  # why nobody is known to run

    def __str__(self) -> str:
        if self.state == "running":
            return f"running the pipeline '{self.pipeline}' as {self.address}, term {self.term}"
        return "standing by: " + (self.reason or f"{self.running} runs the pipeline '{self.pipeline}'")

    def fields(self) -> dict[str, Any]:
        """Return the status for programs, without what is not known."""
        return {name: value for name, value in asdict(self).items() if value not in {None, ""}}


class SyncOutput(Protocol):
    """The output of a sync job: messages, progress reports, and whether this process runs the pipeline or stands by."""

    def tell(self, text: str) -> None:
        """Write a message for people."""
        ...

    def report(self, report: SyncReport) -> None:
        """Write how far the stream is."""
        ...

    def enter(self, status: DriverStatus) -> None:
        """Write that this process runs the pipeline from now on, or stands by."""
        ...
