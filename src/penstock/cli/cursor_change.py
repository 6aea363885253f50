"""A manual change of a client's cursor: what it means for the client, and how it is shown and confirmed."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.cli.output import Output, format_size
from penstock.config import InstanceSettings, SourceSettings
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.instance.cursors import LogExtent
    from penstock.meta import Cursor


@dataclass(frozen=True, slots=True)
class CursorChange:
    """A change of a client's cursor by `set` or `reset`: text is printed while it happens, JSON when it is over.

    change = CursorChange.between(settings, 1001, before, after)
    if change.confirm(output, dry_run=False, yes=False): ...
    """

    destination: str
    client: int
    before: "Cursor | None"
    after: "Cursor | None"
    log_bytes: int | None
    """How much of the log lies between the two; None if that is not known."""

    @classmethod
    def between(
        cls, settings: InstanceSettings, client: int, before: "Cursor | None", after: "Cursor | None"
    ) -> "CursorChange":
        """Build the change from the cursors before and after."""
        log_bytes = None
        if before is not None and after is not None:
            low, high = sorted((before.position, after.position))
            extent, _ = find_extent(settings)
            log_bytes = extent.bytes_between(low, high) if extent else None
        return cls(settings.destination, client, before, after, log_bytes)

    @property
    def effect(self) -> str:
        """Return what the change means for the client, in one of the words that are documented for JSON."""
        if self.after is None:
            return "forget"
        if self.before is None:
            return "begin"
        if self.before.position == self.after.position:
            return "none"
        if self.before.position.epoch != self.after.position.epoch:
            return "other_log"
        return "back" if self.after.position < self.before.position else "forward"

    def confirm(self, output: Output, *, dry_run: bool, yes: bool) -> bool:
        """Show the change and ask whether it is wanted; if it is not, or changes nothing, say so and return False."""
        if not output.is_json:
            output.print_note("\n".join(self._format_lines()))
        if self.effect == "none":
            self.print_outcome(output, "", is_changed=False)
            return False
        if dry_run:
            self.print_outcome(output, "nothing was changed (--dry-run)", is_changed=False)
            return False
        if yes or output.confirm("Change it?"):
            return True
        self.print_outcome(output, "nothing was changed", is_changed=False)
        return False

    def print_outcome(self, output: Output, text: str, *, is_changed: bool) -> None:
        """Print what was done."""
        data = {
            "destination": self.destination,
            "client": self.client,
            "before": format_position(self.before),
            "after": format_position(self.after),
            "effect": self.effect,
            "log_bytes": self.log_bytes,
            "changed": is_changed,
        }
        output.print_result(data, lambda: [text] if text else [])

    def _format_lines(self) -> Iterator[str]:
        """Yield the change as lines of text."""
        yield f"client {self.client} of '{self.destination}'"
        yield f"- {self.before or 'no cursor'}{_format_age(self.before)}"
        yield f"+ {self.after or 'no cursor'}{_format_age(self.after)}"
        size = f", {format_size(self.log_bytes, unit='bytes')} of the log" if self.log_bytes is not None else ""
        if self.effect == "none":
            yield "it is there already"
        elif self.effect == "other_log" and self.before and self.after:
            yield f"another log: epoch {self.before.position.epoch} becomes {self.after.position.epoch}"
        elif self.effect == "back":
            yield f"back: what lies between the two is redelivered{size}"
        elif self.effect == "forward":
            yield f"forward: what lies between the two is never delivered{size}"


def format_position(cursor: "Cursor | None") -> str | None:
    """Return a cursor's position as text."""
    return f"{cursor.position.file}:{cursor.position.offset}" if cursor else None


def format_time(cursor: "Cursor | None") -> str:
    """Return the time of a cursor as text."""
    seconds = cursor.position.timestamp if cursor else 0
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}" if seconds else ""


def _format_age(cursor: "Cursor | None") -> str:
    """Return how long ago a cursor's time is."""
    time = format_time(cursor)
    return f"  {time}" if time else ""


def find_extent(settings: InstanceSettings) -> "tuple[LogExtent | None, str]":
    """Return the first and the last position of the source's log, or why they are not known."""
    from penstock.instance.cursors import measure_source_log  # noqa: PLC0415

    source = settings.source
    if isinstance(source, SourceSettings):
        source = source.model_copy(update={"connect_timeout_s": min(3, source.connect_timeout_s)})
    try:
        return measure_source_log(settings.model_copy(update={"source": source})), ""
    except PenstockError as error:
        return None, str(error)
