"""Finds positions in a source's log: of a time, a GTID, or a position of another log. At most two files are read for
it."""

import logging
import time
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from penstock.binlog.arrays import to_mask
from penstock.binlog.events.block import Block
from penstock.binlog.events.gtid import render_gtids
from penstock.binlog.events.gtid_mask import are_in
from penstock.binlog.events.layout import MAGIC
from penstock.errors import ConfigurationError, PositionLostError
from penstock.model import GtidSet, Position
from penstock.model.start_point import Moment, StartWord, parse_start
from penstock.source import BinlogSource
from penstock.source.server_log import ServerLog
from penstock.store import Start
from penstock.store.block_info import BlockEntries, BlockInfo, EntryPosition
from penstock.store.start import StoreView, find_start

log = logging.getLogger(__name__)


class PositionResolver:
    """Finds positions in the log that a source has now, in the current epoch. They are always transaction boundaries.

    resolver = PositionResolver(source, epoch=0, window_s=60)
    position = resolver.resolve("time:-10m", datetime.now(UTC))
    """

    def __init__(
        self,
        source: BinlogSource,
        epoch: int,
        window_s: float,
        *,
        by_gtids: bool = True,
        is_reset: bool = False,
        destination: str = "",
    ) -> None:
        """Without `by_gtids`, GTIDs of the previous epoch may name different transactions in this log, and are not
        used. A log that was reset (`is_reset`) need not have what came before."""
        self._source, self._epoch, self._window_s = source, epoch, window_s
        self._by_gtids, self._is_reset, self._destination = by_gtids, is_reset, destination

    def resolve(self, text: str | None, now: datetime) -> Position:
        """Return the position that `text` names, in the grammar of `parse_start`; by default where the log ends."""
        point = StartWord.LATEST if text is None else parse_start(text, now)
        if point is StartWord.LATEST:
            return self.with_current_epoch(self._source.inventory().end)
        if point is StartWord.EARLIEST:
            return self.with_current_epoch(self._source.inventory().oldest)
        if isinstance(point, StartWord):
            raise _stored_error()
        if isinstance(point, Position):
            return self.with_current_epoch(point)
        if isinstance(point, Moment):
            oldest = self._source.inventory().oldest
            if point.us < self._source.file_identity(oldest.file).began * 1_000_000:
                log.warning(
                    "start is before the oldest binlog destination=%s source=%s start=%s oldest=%s: capture begins at"
                    " the oldest",
                    self._destination,
                    self._source.address,
                    text,
                    oldest,
                )
            return self.find(Start.at_time(point.us))
        self.check_was_executed(point)
        is_one = point.is_single and not point.is_mariadb  # each of MariaDB's is a position by itself
        return self.find(Start.after_gtid(point.text)) if is_one else self.find_after_gtids(point)

    def check_was_executed(self, gtids: GtidSet) -> None:
        """Raise PositionLostError for GTIDs that the source never executed: no position is after them."""
        had = self._source.end().gtids
        if had is None:
            raise PositionLostError(f"{self._source.address} has no GTIDs: write a position or a time instead")
        lacking = gtids.minus(had)
        if lacking.ranges:
            raise PositionLostError(
                f"{self._source.address} never had {gtids.text}: it has {had.text or 'none'}; is it another server's?"
            )

    def find(self, start: Start) -> Position:
        """Return the position of a GTID or a time: first the file is found, by its first events, then the transaction
        in it."""
        since = GtidSet.parse(start.gtid) if start.kind == "gtid" else Moment(start.time_us)
        searched = self._read_headers(since)
        last = searched.start
        for block in searched:
            entries = BlockEntries.of(block)
            if not len(entries):
                continue
            match = _find_in_block(start, entries, last)
            if match is not None:
                return self.with_current_epoch(match)
            ends = block.boundaries
            last = block.boundary_after(int(ends[-1])) if ends.size else last
        if start.kind == "gtid":
            raise PositionLostError(f"the log of {self._source.address} has no transaction {start.gtid}")
        return self.with_current_epoch(last)

    def find_after_gtids(self, executed: GtidSet) -> Position:
        """Return the position before the first transaction that is not in the set."""
        inventory = self._source.inventory()
        before = self._source.previous_gtids(inventory.files[0]) if inventory.purged is None else inventory.purged
        if not executed.includes(before):
            gone = before.minus(executed)
            raise PositionLostError(
                f"{self._source.address} no longer has all transactions after {executed.text}: its log begins at"
                f" {inventory.oldest}, and {gone.text} came before"
            )
        searched = self._read_headers(executed)
        last = searched.start
        for block in searched:
            ends = block.boundaries
            names = render_gtids(block.gtids[ends].copy(), block.tags)
            outside = np.flatnonzero(~are_in(names, executed) & to_mask(names.is_valid()))
            inside = ends[: outside[0]] if outside.size else ends
            last = block.boundary_after(int(inside[-1])) if inside.size else last
            if outside.size:
                break
        return self.with_current_epoch(replace(last, gtids=executed))

    def align(self, position: Position) -> Position:
        """Return the position itself if it is a transaction boundary, else the last boundary before it; with its
        GTIDs."""
        plain, has_gtids = replace(position, epoch=0), self._source.end().gtids is not None
        # Where no event begins, only a checksum tells.
        is_between = self._read_headers(plain, verify=True).start == plain
        if is_between and (position.gtids is not None or not has_gtids):
            return position
        boundary = self._find_last_boundary(plain, has_gtids=has_gtids)
        if is_between:
            return replace(position, gtids=boundary.gtids if boundary == plain else None)
        log.info(
            "position moved to a transaction boundary destination=%s from=%s to=%s",
            self._destination,
            position,
            boundary,
        )
        return self.with_current_epoch(boundary)

    def _find_last_boundary(self, position: Position, *, has_gtids: bool) -> Position:
        """Return the last transaction boundary up to `position`; its file is read up to there."""
        first = last = Position(position.file, len(MAGIC))
        if last == position:
            gtids = self._source.previous_gtids(position.file) if has_gtids else None
            return replace(last, gtids=gtids)
        for block in self._read_headers(first):
            part = block.between(first, position)
            if len(part) and part.boundaries.size:
                last = part.boundary_after(int(part.boundaries[-1]))
            if block.end >= position:
                break
        return last

    def translate(self, position: Position) -> Position:
        """Return the position of this log that corresponds to one of an earlier epoch: by its GTIDs, or by its time
        less a window."""
        if position.epoch == self._epoch:
            return position
        if position.epoch > self._epoch:
            raise PositionLostError(
                f"{position} is of a log that comes after that of {self._source.address}, which is of epoch"
                f" {self._epoch}: the persisted epoch is older than this position"
            )
        has_gtids = self._by_gtids and position.gtids is not None and bool(position.gtids.ranges)
        if has_gtids and position.gtids is not None and self._source.end().gtids is not None:
            return self.find_after_gtids(position.gtids)
        return self.find_at_time_of(position)

    def find_at_time_of(self, position: Position, *, not_after: float | None = None) -> Position:
        """Return the position of the same time less a window, or of the time at which it was captured, if that is
        earlier: a server's clock may show anything."""
        if position.timestamp:
            seconds = min(position.timestamp, not_after or time.time())
            oldest = self._source.inventory().oldest
            is_whole = self._is_reset and oldest.file_number == 1
            if not is_whole and self._source.file_identity(oldest.file).began > seconds:
                raise PositionLostError(
                    f"the log of {self._source.address} begins at {oldest}, after the time of {position}: what came"
                    " between the two is gone"
                )
            return self.find(Start.at_time(round((seconds - self._window_s) * 1_000_000)))
        raise PositionLostError(
            f"{position} is of the log that was followed before that of {self._source.address}, and neither its GTIDs"
            " nor its time are known: say where to resume with `penstock position set`; a Spark query starts over with"
            " a new checkpoint"
        )

    def _read_headers(self, since: Position | GtidSet | Moment, *, verify: bool = False) -> ServerLog:
        """Yield blocks from `since` on, by default without verifying checksums: what is found is read again later."""
        return ServerLog(self._source, since, self._log_server_warning, follow=False, verify=verify)

    def _log_server_warning(self, text: str) -> None:
        """Log what `ServerLog` would tell a user of the command line."""
        log.info(
            "binlog read to find the start position destination=%s source=%s message=%s",
            *(self._destination, self._source.address, text),
        )

    def with_current_epoch(self, position: Position) -> Position:
        """Return a position that the server gave, in the current epoch."""
        return replace(position, epoch=self._epoch)


def check_start(text: str | None) -> None:
    """Raise ConfigurationError when `text` is not a way to write where to begin. No source is asked."""
    if text is not None and parse_start(text, datetime.now(UTC)) is StartWord.STORED:
        raise _stored_error()


def _stored_error() -> ConfigurationError:
    """Return the error for the start `stored`, which only readers of a running server can use."""
    return ConfigurationError(
        "stored is for clients of a running server: here write earliest, latest, a position, a time or GTIDs"
    )


def _find_in_block(start: Start, entries: BlockEntries, last: Position) -> Position | None:
    """Return the position of the start, if it can be told from this block, else None."""
    info = BlockInfo.of(entries, 0, 0)
    before, missing = EntryPosition(-1, last, 0), EntryPosition(-1, last, 0)
    try:
        begin = find_start(start, StoreView([info], lambda _: entries, before, missing))
    except PositionLostError:
        return None
    return None if begin is missing else _add_gtids(entries.block, begin.position)


def _add_gtids(block: Block, position: Position) -> Position:
    """Return a position in a block with the GTIDs of all transactions up to it."""
    part = block.between(block.start, position)
    return part.boundary_after(len(part) - 1) if len(part) else position
