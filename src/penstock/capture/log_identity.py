"""Which log is followed, and whether it is still the same one.

A server is identified by its uuid, a file by the time at which it was created. When another server answers, or the log
was reset, the epoch rises: positions of the new log come after all of the old, whatever its files are called.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from enum import Enum

from penstock.config.settings import MAX_EPOCH
from penstock.errors import ConfigurationError
from penstock.meta import SourceRecord, SourceRecords
from penstock.model import FileIdentity, GtidSet, Position
from penstock.source import LogInventory

log = logging.getLogger(__name__)


class LogMatch(Enum):
    """The relation of the log that a source has now to the log that was followed."""

    SAME = "the log that was followed"
    OTHER_SERVER = "the log of another server"
    RESET = "a log that was reset, or lost its end"


class LogIdentity:
    """The identity of the log that is followed. Any thread may read it; only the capture thread changes it."""

    def __init__(self, records: SourceRecords, floor: int, destination: str = "") -> None:
        """`floor` is the lowest epoch to use."""
        self._records, self._destination = records, destination
        self._lock = threading.Lock()
        self._record = records.load()
        if self._record.epoch < floor:
            # By hand: whoever raises it says that GTIDs still mean the same, or begins without cursors.
            self._record = replace(self._record, epoch=floor, by_gtids=True)

    @property
    def record(self) -> SourceRecord:
        """Return the persisted identity: address, server, files and epoch."""
        with self._lock:
            return self._record

    @property
    def epoch(self) -> int:
        """Return the number of the current epoch."""
        return self.record.epoch

    def compare(
        self, inventory: LogInventory, position: Position, file_identity: Callable[[str], FileIdentity]
    ) -> LogMatch:
        """Return how the log that a server has now relates to the one that was followed, for resuming at a position of
        the latter."""
        log_match = self._compare(inventory, position, file_identity)
        if (
            log_match is LogMatch.SAME
            and position.epoch == self.epoch
            and position.gtids is not None
            and inventory.end.gtids is not None
        ):
            # A file may have the name of another, and have begun in the same second.
            return LogMatch.RESET if _is_missing_gtids(inventory.end.gtids, position.gtids) else log_match
        return log_match

    def _compare(
        self, inventory: LogInventory, position: Position, file_identity: Callable[[str], FileIdentity]
    ) -> LogMatch:
        """Compare by the server and by the identity of the files; `compare` then checks the GTIDs."""
        record = self.record
        is_same_server = bool(record.server) and record.server == inventory.server
        if record.server and inventory.server and not is_same_server:
            return LogMatch.OTHER_SERVER
        if not record.files:
            return LogMatch.SAME
        common = [file for file in record.files if file in inventory.sizes]
        file = position.file if position.file in common else common[-1] if common else ""
        known = record.files[file or list(record.files)[-1]]
        actual = file_identity(file or inventory.files[0])
        if file and actual == known:
            return LogMatch.SAME
        if not is_same_server and actual.server_id != known.server_id:
            return LogMatch.OTHER_SERVER
        newest = max(Position(name, 0).file_number for name in record.files)
        is_later = not file and Position(inventory.files[0], 0).file_number > newest
        return LogMatch.SAME if is_later else LogMatch.RESET  # later: all that is known of it was purged

    def shares_files_with(self, inventory: LogInventory, file_identity: Callable[[str], FileIdentity]) -> bool:
        """Return whether the files that are there belong to the log that was followed, although some of it may be
        missing."""
        common = [file for file in self.record.files if file in inventory.sizes]
        return bool(common) and file_identity(common[-1]) == self.record.files[common[-1]]

    def save_server(self, address: str, server: str) -> None:
        """Persist the address and the server at which the log is found."""
        if (self.record.address, self.record.server) != (address, server):
            self._save(replace(self.record, address=address, server=server))

    def save_file(self, mark: FileIdentity) -> None:
        """Persist the identity of a file of the log."""
        if self.record.files.get(mark.file) != mark:
            self._save(self.record.with_file(mark))

    def is_known_file(self, mark: FileIdentity | None) -> bool:
        """Return whether a file is the one that was followed, and not another one of the same name."""
        return mark is None or self.record.files.get(mark.file, mark) == mark

    def raise_epoch(self, address: str, server: str, *, by_gtids: bool, is_reset: bool = False) -> int:
        """Begin the next epoch, with another log. The new epoch is persisted before this returns."""
        epoch = self.record.epoch + 1
        if epoch > MAX_EPOCH:
            raise ConfigurationError(f"there is no epoch after {MAX_EPOCH}: start over, as another destination")
        self._save(SourceRecord(epoch, address, server, {}, by_gtids, is_reset))
        log.warning(
            "source has another binlog than before, epoch of positions raised destination=%s epoch=%d source=%s"
            " server=%s: new positions are ordered after all positions of the old binlog",
            self._destination, epoch, address, server or "without uuid",
        )  # fmt: skip
        return epoch

    def _save(self, record: SourceRecord) -> None:
        """Persist a record, then make it the current one."""
        self._records.save(record)
        with self._lock:
            self._record = record


def _is_missing_gtids(gtids: GtidSet, others: GtidSet) -> bool:
    """Return whether a log does not have all of these GTIDs. MariaDB can be told to forget a domain, which is then
    ignored."""
    lacking = others.minus(gtids)
    if not others.is_mariadb or not {*gtids.ranges} & {*others.ranges}:
        return bool(lacking.ranges)
    return any(domain in gtids.ranges for domain in lacking.ranges)
