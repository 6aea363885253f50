"""Where in a source's log something is: a time, a GTID, a place of another log. At most two files are read for it."""

import logging
import time
from dataclasses import replace
from datetime import datetime

import numpy as np

from penstock.binlog.events.block import Block
from penstock.binlog.events.gtid import render_gtids
from penstock.binlog.events.layout import MAGIC
from penstock.errors import PositionLostError
from penstock.inspect.gtid_mask import are_in, truths
from penstock.inspect.place import Moment, parse_place
from penstock.inspect.server_log import ServerLog
from penstock.model import GtidSet, Position
from penstock.source import Origin
from penstock.store import Start
from penstock.store.client import Place
from penstock.store.held import Entries, Held
from penstock.store.start import place_of

log = logging.getLogger(__name__)


class Places:
    """In the log that a source has now, of this epoch. What it finds lies between two transactions."""

    def __init__(
        self, origin: Origin, epoch: int, window_s: float, *, by_gtids: bool = True, is_anew: bool = False
    ) -> None:
        """Without `by_gtids` this log has given the GTIDs of the one before to other transactions, or may have. A log
        that began anew (`is_anew`) need not have what came before."""
        self._origin, self._epoch, self._window_s = origin, epoch, window_s
        self._by_gtids, self._is_anew = by_gtids, is_anew

    def configured(self, text: str | None, now: datetime) -> Position:
        """As people write it: `first`, `latest`, a position, a time, or GTIDs, after which it is; by default where the
        log ends."""
        if text is None or text == "latest":
            return self.placed(self._origin.look().end)
        if text == "first":
            return self.placed(self._origin.look().oldest)
        place = parse_place(text, now)
        if isinstance(place, Position):
            return self.placed(place)
        if isinstance(place, Moment):
            oldest = self._origin.look().oldest
            if place.us < self._origin.mark_of(oldest.file).began * 1_000_000:
                log.warning(
                    "the log of %s begins at %s, after %s: it is read from there", self._origin.address, oldest, text
                )
            return self.find(Start.at_time(place.us))
        self._check_had(place)
        is_one = place.is_single and not place.is_mariadb  # MariaDB's are places by themselves
        return self.find(Start.after_gtid(place.text)) if is_one else self.after(place)

    def _check_had(self, gtids: GtidSet) -> None:
        """To begin after what was never there would be to begin anywhere."""
        had = self._origin.end().gtids
        if had is None:
            raise PositionLostError(f"{self._origin.address} has no GTIDs: write a position or a time instead")
        lacking = gtids.minus(had)
        if lacking.ranges:
            raise PositionLostError(
                f"{self._origin.address} never had {gtids.text}: it has {had.text or 'none'}; is it another server's?"
            )

    def find(self, start: Start) -> Position:
        """By a GTID or a time: the file by its first events, then the transaction in it."""
        since = GtidSet.parse(start.gtid) if start.kind == "gtid" else Moment(start.time_us)
        searched = self._searched(since)
        last = searched.start
        for block in searched:
            entries = Entries.of(block)
            if not len(entries):
                continue
            found = _found(start, entries, last)
            if found is not None:
                return self.placed(found)
            ends = block.boundaries
            last = block.boundary_after(int(ends[-1])) if ends.size else last
        if start.kind == "gtid":
            raise PositionLostError(f"the log of {self._origin.address} has no transaction {start.gtid}")
        return self.placed(last)

    def after(self, executed: GtidSet) -> Position:
        """Before the first transaction that is not in the set."""
        seen = self._origin.look()
        before = self._origin.previous_gtids(seen.files[0]) if seen.purged is None else seen.purged
        if not executed.includes(before):
            gone = before.minus(executed)
            raise PositionLostError(
                f"{self._origin.address} no longer has all transactions after {executed.text}: its log begins at"
                f" {seen.oldest}, and {gone.text} came before"
            )
        searched = self._searched(executed)
        last = searched.start
        for block in searched:
            ends = block.boundaries
            names = render_gtids(block.gtids[ends].copy(), block.tags)
            outside = np.flatnonzero(~are_in(names, executed) & truths(names.is_valid()))
            inside = ends[: outside[0]] if outside.size else ends
            last = block.boundary_after(int(inside[-1])) if inside.size else last
            if outside.size:
                break
        return self.placed(replace(last, gtids=executed))

    def settled(self, position: Position) -> Position:
        """The place itself, or the last before it that lies between two transactions; with the GTIDs before it."""
        plain, has_gtids = replace(position, epoch=0), self._origin.end().gtids is not None
        # Where no event begins, only a checksum tells.
        is_between = self._searched(plain, verify=True).start == plain
        if is_between and (position.gtids is not None or not has_gtids):
            return position
        found = self._last_before(plain, has_gtids=has_gtids)
        if is_between:
            return replace(position, gtids=found.gtids if found == plain else None)
        log.info("%s is inside a transaction, or no event begins there: going on at %s", position, found)
        return self.placed(found)

    def _last_before(self, position: Position, *, has_gtids: bool) -> Position:
        """Its file is read up to there."""
        first = last = Position(position.file, len(MAGIC))
        if last == position:
            gtids = self._origin.previous_gtids(position.file) if has_gtids else None
            return replace(last, gtids=gtids)
        for block in self._searched(first):
            part = block.between(first, position)
            if len(part) and part.boundaries.size:
                last = part.boundary_after(int(part.boundaries[-1]))
            if block.end >= position:
                break
        return last

    def translated(self, position: Position) -> Position:
        """A place of an earlier epoch, as a place of this log: by its GTIDs, or by its time and a while before it."""
        if position.epoch == self._epoch:
            return position
        if position.epoch > self._epoch:
            raise PositionLostError(
                f"{position} is of a log that comes after that of {self._origin.address}, which is of epoch"
                f" {self._epoch}: what was kept of the epochs is older than this place"
            )
        has_gtids = self._by_gtids and position.gtids is not None and bool(position.gtids.ranges)
        if has_gtids and position.gtids is not None and self._origin.end().gtids is not None:
            return self.after(position.gtids)
        return self.by_time(position)

    def by_time(self, position: Position, *, not_after: float | None = None) -> Position:
        """A while before it, or before it was captured, whichever is earlier: a server's clock may be anything."""
        if position.timestamp:
            seconds = min(position.timestamp, not_after or time.time())
            oldest = self._origin.look().oldest
            is_whole = self._is_anew and oldest.file_number == 1
            if not is_whole and self._origin.mark_of(oldest.file).began > seconds:
                raise PositionLostError(
                    f"the log of {self._origin.address} begins at {oldest}, after the time of {position}: what came"
                    " between the two is gone"
                )
            return self.find(Start.at_time(round((seconds - self._window_s) * 1_000_000)))
        raise PositionLostError(
            f"{position} is of the log that was followed before that of {self._origin.address}, and neither its GTIDs"
            " nor its time are known: say where to go on with `penstock position set`, a Spark query begins anew with a"
            " new checkpoint"
        )

    def _searched(self, since: Position | GtidSet | Moment, *, verify: bool = False) -> ServerLog:
        """Headers are looked at, and by default no checksums: what is found is read again."""
        return ServerLog(self._origin, since, no_warning, follow=False, verify=verify)

    def placed(self, position: Position) -> Position:
        """As the server gives it, and in our order."""
        return replace(position, epoch=self._epoch)


def no_warning(text: str) -> None:
    log.info("%s", text)


def _found(start: Start, entries: Entries, last: Position) -> Position | None:
    """Where the start is, if that is known from this block."""
    held = Held.of(entries, 0, 0)
    before, missing = Place(-1, last, 0), Place(-1, last, 0)
    try:
        place = place_of(start, [held], lambda _: entries, before, missing)
    except PositionLostError:
        return None
    return None if place is missing else _with_gtids(entries.block, place.position)


def _with_gtids(block: Block, position: Position) -> Position:
    part = block.between(block.start, position)
    return part.boundary_after(len(part) - 1) if len(part) else position
