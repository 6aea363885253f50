"""Which log is followed, and whether it is still the one that it was.

A server is told by its uuid, a file by when it began. When another server answers, or the log began anew, the epoch
rises: positions of the new log come after all of the old, whatever its files are called.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from enum import Enum

from penstock.config.settings import MOST_EPOCHS
from penstock.errors import ConfigurationError
from penstock.meta import SourceRecord, SourceRecords
from penstock.model import FileMark, GtidSet, Position
from penstock.source import Seen

log = logging.getLogger(__name__)


class Kinship(Enum):
    SAME = "the log that was followed"
    ANOTHER = "the log of another server"
    ANEW = "a log that began anew, or lost its end"


class Lineage:
    """Any thread may look; capture's changes it."""

    def __init__(self, records: SourceRecords, floor: int) -> None:
        """`floor` is the least epoch."""
        self._records = records
        self._lock = threading.Lock()
        self._record = records.load()
        if self._record.epoch < floor:
            # By hand: whoever raises it says that GTIDs still mean the same, or begins without cursors.
            self._record = replace(self._record, epoch=floor, by_gtids=True)

    @property
    def record(self) -> SourceRecord:
        with self._lock:
            return self._record

    @property
    def epoch(self) -> int:
        return self.record.epoch

    def judge(self, seen: Seen, place: Position, mark_of: Callable[[str], FileMark]) -> Kinship:
        """What a server has, for who wants to go on at a place of the log that was followed."""
        kinship = self._judge(seen, place, mark_of)
        if (
            kinship is Kinship.SAME
            and place.epoch == self.epoch
            and place.gtids is not None
            and seen.end.gtids is not None
        ):
            # A file may have the name of another, and have begun in the same second.
            return Kinship.ANEW if _lacks(seen.end.gtids, place.gtids) else kinship
        return kinship

    def _judge(self, seen: Seen, place: Position, mark_of: Callable[[str], FileMark]) -> Kinship:
        record = self.record
        is_same_server = bool(record.server) and record.server == seen.server
        if record.server and seen.server and not is_same_server:
            return Kinship.ANOTHER
        if not record.marks:
            return Kinship.SAME
        common = [file for file in record.marks if file in seen.sizes]
        file = place.file if place.file in common else common[-1] if common else ""
        known = record.marks[file or list(record.marks)[-1]]
        found = mark_of(file or seen.files[0])
        if file and found == known:
            return Kinship.SAME
        if not is_same_server and found.server_id != known.server_id:
            return Kinship.ANOTHER
        newest = max(Position(name, 0).file_number for name in record.marks)
        is_later = not file and Position(seen.files[0], 0).file_number > newest
        return Kinship.SAME if is_later else Kinship.ANEW  # later: all that is known of it was purged

    def has_files_of(self, seen: Seen, mark_of: Callable[[str], FileMark]) -> bool:
        """What is there is of the log that was followed; the rest of it may be away."""
        common = [file for file in self.record.marks if file in seen.sizes]
        return bool(common) and mark_of(common[-1]) == self.record.marks[common[-1]]

    def adopt(self, address: str, server: str) -> None:
        """The log is found there."""
        if (self.record.address, self.record.server) != (address, server):
            self._save(replace(self.record, address=address, server=server))

    def note(self, mark: FileMark) -> None:
        """A file of the log."""
        if self.record.marks.get(mark.file) != mark:
            self._save(self.record.with_mark(mark))

    def is_known(self, mark: FileMark | None) -> bool:
        """Not another one of that name."""
        return mark is None or self.record.marks.get(mark.file, mark) == mark

    def rise(self, address: str, server: str, *, by_gtids: bool, is_anew: bool = False) -> int:
        """Begin the next epoch, with another log; it is kept before this returns."""
        epoch = self.record.epoch + 1
        if epoch > MOST_EPOCHS:
            raise ConfigurationError(f"there is no epoch after {MOST_EPOCHS}: begin anew, as another destination")
        self._save(SourceRecord(epoch, address, server, {}, by_gtids, is_anew))
        log.warning("epoch %d begins source=%s server=%s", epoch, address, server or "without uuid")
        return epoch

    def _save(self, record: SourceRecord) -> None:
        self._records.save(record)
        with self._lock:
            self._record = record


def _lacks(gtids: GtidSet, others: GtidSet) -> bool:
    """Whether a log does not have all of these. MariaDB can be told to forget a domain."""
    lacking = others.minus(gtids)
    if not others.is_mariadb or not {*gtids.ranges} & {*others.ranges}:
        return bool(lacking.ranges)
    return any(domain in gtids.ranges for domain in lacking.ranges)
