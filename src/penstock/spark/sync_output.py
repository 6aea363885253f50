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


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The progress of the first load of an index."""

    index: str
    documents: int  # that are written
    documents_per_s: float
    estimated: int  # of the database, by its own estimate

    def __str__(self) -> str:
        total = max(self.documents, self.estimated)
        left_s = (total - self.documents) / max(self.documents_per_s, 1e-3)
        return (
            f"  {self.documents:,} of about {total:,} documents, {self.documents / max(total, 1):.0%},"
            f" {self.documents_per_s:,.0f} documents/s, {left_s:,.0f} s left"
        )


class SyncOutput(Protocol):
    """The output of a sync job: messages, progress reports, and whether this process runs the pipeline or stands by."""

    def tell(self, text: str) -> None:
        """Write a message for people."""
        ...

    def show_load(self, report: LoadReport) -> None:
        """Write how far the first load of an index is; it is called many times a second."""
        ...

    def report(self, report: SyncReport) -> None:
        """Write how far the stream is."""
        ...

    def enter(self, status: DriverStatus) -> None:
        """Write that this process runs the pipeline from now on, or stands by."""
        ...
