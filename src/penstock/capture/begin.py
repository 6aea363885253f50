"""Where an instance began to read the log, and why there.

An instance that finds no cursor begins at the end of the log, and what was written while it was down is not captured.
That is right for a new instance and wrong for one whose cursors lie elsewhere, so it is always said.
"""

import logging
from dataclasses import dataclass
from typing import Any, Literal

from penstock.config import InstanceSettings
from penstock.meta.zookeeper_backend import ROOT
from penstock.model import Position

log = logging.getLogger(__name__)

BeginKind = Literal["cursor", "store", "configured", "end"]


@dataclass(frozen=True, slots=True)
class CaptureStart:
    """The position at which an instance began to read the binlog, and why. The kind `end` means the end of the binlog,
    because no cursor was found; `reason` says where cursors were looked for."""

    kind: BeginKind
    position: Position
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Return the start as plain data for a status."""
        return {"kind": self.kind, "position": self.position.to_json(), "reason": self.reason}


def explain_start(
    settings: InstanceSettings, position: Position, *, has_cursor: bool, has_events: bool
) -> CaptureStart:
    """Return why an instance begins at `position`; `has_events` means that its store resumed with what it holds."""
    if has_events:
        return CaptureStart("store", position, "the store resumed with the events it holds")
    if has_cursor:
        return CaptureStart("cursor", position, f"a cursor was found in {describe_cursor_location(settings)}")
    lacking = f"no cursor was found in {describe_cursor_location(settings)}"
    if settings.meta_kind == "memory":
        lacking = "cursors are kept in memory only, so there is none after a start"
    if settings.start in {None, "latest"}:
        return CaptureStart("end", position, lacking)
    return CaptureStart("configured", position, f"{lacking}, and start is {settings.start}")


def log_start(settings: InstanceSettings, begin: CaptureStart) -> None:
    """Log where an instance begins; a warning when that is the end of the log and a cursor could have been there."""
    is_unasked = begin.kind == "end" and settings.start is None and settings.meta_kind != "memory"
    text = "started at the end of the binlog" if begin.kind == "end" else "started"
    level = logging.WARNING if is_unasked else logging.INFO
    log.log(level, "%s destination=%s position=%s reason=%s", text, settings.destination, begin.position, begin.reason)


def describe_cursor_location(settings: InstanceSettings) -> str:
    """Return where the cursors of an instance are persisted, in words by which an operator finds them."""
    if settings.meta_kind == "memory":
        return "memory"
    if settings.meta_kind == "file" and settings.data_dir is not None:
        return str(settings.data_dir / settings.destination / "meta.dat")
    return f"ZooKeeper {settings.zookeeper}, {ROOT}/{settings.destination}"
