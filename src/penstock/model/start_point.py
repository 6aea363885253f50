"""The one grammar for a position in a log as people write it: settings, commands, Flight, `connect` and Spark.

| text                              | meaning                                                             |
|-----------------------------------|---------------------------------------------------------------------|
| `earliest`                        | where the source's log begins                                       |
| `stored`                          | what the server's store still has                                   |
| `latest`                          | where the log ends now                                              |
| `binlog.000007:4`                 | that position                                                       |
| `gtid:0-1-8`, or the GTIDs alone  | after these transactions                                            |
| `time:2026-11-15T10:00`, `time:-10m`, or the time alone | the first transaction committed then or later |
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from enum import Enum

from penstock.errors import ConfigurationError
from penstock.model.gtid_set import GtidSet
from penstock.model.position import Position

_AGO = re.compile(r"-\s*(\d{1,12}(?:\.\d{1,12})?)\s*(s|m|h|d|w)", re.IGNORECASE)
_LARGEST_OFFSET = (1 << 63) - 1
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604_800}
_CLOCK = re.compile(r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
_TIMES = "a time in UTC ('2026-11-15 10:00', 10:00, -10m, now; another zone as 2026-11-15T10:00+02:00)"


@dataclass(frozen=True, slots=True)
class Moment:
    """The time at which a transaction was committed, in microseconds since 1970.

    moment = Moment(us=1_700_000_000 * 1_000_000)
    """

    us: int

    def is_after(self, second: int) -> bool:
        """Return whether this is after all of a second: what was committed before a log was opened may be of it too."""
        return self.us >= (second + 1) * 1_000_000


class StartWord(Enum):
    """A start that is given by name, such as `latest`; the position that it means is looked up each time."""

    EARLIEST = "earliest"  # where the source's log begins
    STORED = "stored"  # what the server's store still has
    LATEST = "latest"  # where the log ends now


LogPoint = Position | Moment | GtidSet
StartPoint = StartWord | LogPoint

_WORDS = {word.value: word for word in StartWord}


def parse_start(text: str, now: datetime) -> StartPoint:
    """Return where to begin. `now` is in UTC, as are times without a zone."""
    word = text.strip().lower()
    if word == "first":
        raise ConfigurationError(
            "'first' is not a start: did you mean earliest, where the source's log begins? What the store still has is"
            " stored"
        )
    return _WORDS[word] if word in _WORDS else parse_point(text, now)


def is_fixed(text: str) -> bool:
    """Return whether a start means the same position whenever it is asked for: a position, GTIDs, or a whole date."""
    text = text.strip().lower().removeprefix("time:").strip()
    return text not in _WORDS and text != "now" and not _AGO.fullmatch(text) and not _CLOCK.fullmatch(text)


def parse_point(text: str, now: datetime) -> LogPoint:
    """Return a position, a time, or the GTIDs after which it is. `now` is in UTC, as are times without a zone."""
    text = text.strip()
    if text.lower().startswith("gtid:"):
        return GtidSet.parse(text[5:])
    if text.lower().startswith("time:"):
        moment = _parse_time(text[5:].strip(), now)
        if moment is None:
            raise ConfigurationError(f"{text!r} has no time: {_TIMES}")
        return moment
    moment = _parse_time(text, now)
    if moment is not None:
        return moment
    if GtidSet.looks_like(text):
        return GtidSet.parse(text)
    try:
        position = Position.parse(text)
    except ConfigurationError:
        raise _unreadable_error(text) from None
    if position.offset > _LARGEST_OFFSET:
        raise _unreadable_error(text)
    return position


def _parse_time(text: str, now: datetime) -> Moment | None:
    """Return the time that a text is, or None when it does not look like one."""
    if text.lower() == "now":
        return _to_moment(now)
    if ago := _AGO.fullmatch(text):
        return Moment(_to_moment(now).us - round(float(ago[1]) * _SECONDS[ago[2].lower()] * 1_000_000))
    if _CLOCK.fullmatch(text):
        return _parse_clock(text, now.date())
    if not _DAY.match(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _unreadable_error(text) from None
    return _to_moment(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _parse_clock(text: str, today: date) -> Moment:
    """Parse a time of day of `today`, such as `9:30`."""
    try:
        clock = time.fromisoformat(f"0{text}" if text.index(":") == 1 else text)
    except ValueError:
        raise _unreadable_error(text) from None
    return _to_moment(datetime.combine(today, clock, UTC))


def _to_moment(moment: datetime) -> Moment:
    """Return a point in time as microseconds since 1970."""
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return Moment((since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds)


def _unreadable_error(text: str) -> ConfigurationError:
    """Return the error for a text that names no position in a log."""
    return ConfigurationError(
        f"{text!r} is not a position in a log: write a position (binlog.000007:4), {_TIMES} or a GTID"
    )
