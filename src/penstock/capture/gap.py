"""What lies between a position that is needed and a log that no longer has it, in words that an operator can act on."""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.errors import PenstockError
from penstock.model import GtidSet, Position
from penstock.source import BinlogSource, LogInventory

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Gap:
    """The part of a log that was purged: from `start`, exclusive, up to the position at which the log begins now."""

    address: str
    start: Position
    oldest: Position
    oldest_s: int  # when the oldest file began; 0 when not known
    gtids: GtidSet | None  # that are gone and were not captured; None when that is not known
    reason: str = ""

    @property
    def is_empty(self) -> bool:
        """Return whether GTIDs prove that the purged range held no transaction. Without GTIDs nothing is proved."""
        has_gtids = self.start.gtids is not None and bool(self.start.gtids.ranges)
        return has_gtids and self.gtids is not None and not self.gtids.ranges

    def __str__(self) -> str:
        parts = [f"{self.address} no longer has what follows {self.start}: its log begins at {self.oldest}"]
        low, high = self.start.file_number, self.oldest.file_number
        if low < high:
            parts.append(f"missing are files {low} to {high - 1}, the first of them from {self.start.offset} on")
        if self.gtids is not None:
            text = _format_gtids(self.gtids)
            parts.append(f"GTIDs {text}" if text else "no GTID is missing")
        parts.append(f"the time from {_format_time(self.start.timestamp)} to {_format_time(self.oldest_s)}")
        return "; ".join(parts) + (f" ({self.reason})" if self.reason else "")


def describe_gap(origin: BinlogSource, start: Position, inventory: LogInventory, reason: str = "") -> Gap:
    """Return the gap between `start` and the log that the source still has, with what its inventory and GTIDs say about
    it."""
    began, gone = 0, None
    try:
        began = origin.file_identity(inventory.files[0]).began
        if inventory.end.gtids is not None and start.gtids is not None:
            before = inventory.purged or origin.previous_gtids(inventory.files[0])
            gone = before.minus(start.gtids)
    except PenstockError as error:
        log.debug(
            "purged GTIDs not fully known destination=%s source=%s reason=%s", origin.destination, origin.address, error
        )
    return Gap(origin.address, start, inventory.oldest, began, gone, reason)


def _format_gtids(gtids: GtidSet) -> str:
    """Return a GTID set as text; for MariaDB as ranges by domain."""
    return gtids.text if not gtids.is_mariadb else ", ".join(
        f"{domain}-…-{first} to {last}" for domain, ranges in sorted(gtids.ranges.items()) for first, last in ranges
    )  # fmt: skip


def _format_time(seconds: int) -> str:
    """Return a Unix time as text; 0 is an unknown moment."""
    if not seconds:
        return "an unknown moment"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
