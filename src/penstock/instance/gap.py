"""What lies between a place that is needed and a log that no longer has it, in words that an operator can act on."""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.errors import PenstockError
from penstock.model import GtidSet, Position
from penstock.source import Origin, Seen

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Gap:
    """From `start`, exclusively, up to where the log begins now."""

    address: str
    start: Position
    oldest: Position
    oldest_s: int  # when the oldest file began; 0 when not known
    gtids: GtidSet | None  # that are gone and were not captured; None when that is not known
    reason: str = ""

    @property
    def is_empty(self) -> bool:
        """It is proved that no transaction is missing: only the end of a file without any is gone. Without GTIDs before
        it nothing is: what came after it may have had none either."""
        has_gtids = self.start.gtids is not None and bool(self.start.gtids.ranges)
        return has_gtids and self.gtids is not None and not self.gtids.ranges

    def __str__(self) -> str:
        parts = [f"{self.address} no longer has what follows {self.start}: its log begins at {self.oldest}"]
        low, high = self.start.file_number, self.oldest.file_number
        if low < high:
            parts.append(f"missing are files {low} to {high - 1}, the first of them from {self.start.offset} on")
        if self.gtids is not None:
            text = _shown(self.gtids)
            parts.append(f"GTIDs {text}" if text else "no GTID is missing")
        parts.append(f"the time from {_time(self.start.timestamp)} to {_time(self.oldest_s)}")
        return "; ".join(parts) + (f" ({self.reason})" if self.reason else "")


def gap_of(origin: Origin, start: Position, seen: Seen, reason: str = "") -> Gap:
    """As much as is said there."""
    began, gone = 0, None
    try:
        began = origin.mark_of(seen.files[0]).began
        if seen.end.gtids is not None and start.gtids is not None:
            before = seen.purged or origin.previous_gtids(seen.files[0])
            gone = before.minus(start.gtids)
    except PenstockError as error:
        log.debug("not all is known of a gap: %s", error)
    return Gap(origin.address, start, seen.oldest, began, gone, reason)


def _shown(gtids: GtidSet) -> str:
    return gtids.text if not gtids.is_mariadb else ", ".join(
        f"{domain}-…-{first} to {last}" for domain, ranges in sorted(gtids.ranges.items()) for first, last in ranges
    )  # fmt: skip


def _time(seconds: int) -> str:
    if not seconds:
        return "an unknown moment"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
