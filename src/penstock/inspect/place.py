"""A place in a log as people write it: a position, a time, or a GTID."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from penstock.binlog.events.block import Block
from penstock.errors import ConfigurationError
from penstock.model import GtidSet, Position

_AGO = re.compile(r"-\s*(\d+(?:\.\d+)?)\s*(s|m|h|d|w)", re.IGNORECASE)
_LARGEST_OFFSET = (1 << 63) - 1
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604_800}
_CLOCK = re.compile(r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")


@dataclass(frozen=True, slots=True)
class Moment:
    """The time at which a transaction was committed, in microseconds since 1970."""

    us: int

    def is_after(self, second: int) -> bool:
        """After all of it: what was committed before a log was opened may still be of the same second."""
        return self.us >= (second + 1) * 1_000_000

    def is_reached(self, block: Block) -> bool:
        """By a transaction of which something is in the block."""
        return bool((block.column("commit_us") >= self.us).any())


Place = Position | Moment | GtidSet


def parse_place(text: str, now: datetime) -> Place:  # noqa: PLR0911 - a branch per way to write one
    """`now` is in UTC, as are times without a zone of their own."""
    text = text.strip()
    if text.lower().startswith("gtid:"):
        return GtidSet.parse(text[5:])
    if text.lower() == "now":
        return _moment(now)
    if found := _AGO.fullmatch(text):
        return Moment(_moment(now).us - round(float(found[1]) * _SECONDS[found[2].lower()] * 1_000_000))
    if _CLOCK.fullmatch(text):
        return _clock(text, now.date())
    if _DAY.match(text):
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise _unreadable(text) from None
        return _moment(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    if GtidSet.looks_like(text):
        return GtidSet.parse(text)
    try:
        position = Position.parse(text)
    except ConfigurationError:
        raise _unreadable(text) from None
    if position.offset > _LARGEST_OFFSET:
        raise _unreadable(text)
    return position


def _clock(text: str, today: date) -> Moment:
    try:
        clock = time.fromisoformat(f"0{text}" if text.index(":") == 1 else text)
    except ValueError:
        raise _unreadable(text) from None
    return _moment(datetime.combine(today, clock, UTC))


def _moment(moment: datetime) -> Moment:
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return Moment((since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds)


def _unreadable(text: str) -> ConfigurationError:
    return ConfigurationError(
        f"{text!r} is no place in a log: write a position (binlog.000007:4), a time in UTC ('2026-11-15 10:00',"
        " 10:00, -10m, now; another zone as 2026-11-15T10:00+02:00) or a GTID"
    )
