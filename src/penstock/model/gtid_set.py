"""Sets of GTIDs as people and servers write them.

MySQL     uuid:1-5:9, uuid:tag:1-3     everything in these ranges
MariaDB   0-1-25,1-2-30                in each domain everything up to this number
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.errors import ConfigurationError

_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_MYSQL = re.compile(rf"{_UUID}(?::[\w-]+)+(?:\s*,\s*{_UUID}(?::[\w-]+)+)*")
_MARIADB = re.compile(r"\d+-\d+-\d+(?:\s*,\s*\d+-\d+-\d+)*")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_TAG = re.compile(r"[a-z_][a-z0-9_]*", re.IGNORECASE)

Range = tuple[int, int]  # first and last number, both inside
Ranges = Mapping[str, tuple[Range, ...]]


@dataclass(frozen=True, slots=True)
class GtidSet:
    """An immutable set of GTIDs, as ranges of numbers by source (MySQL) or the last GTID by domain (MariaDB).

    executed = GtidSet.parse("0-1-25,1-2-30")
    executed.includes(GtidSet.parse("0-1-24"))  # True
    """

    ranges: Ranges  # by source: uuid, uuid:tag, or domain
    is_mariadb: bool = False
    servers: Mapping[str, int] = field(default_factory=dict[str, int])  # MariaDB: by domain, that of the last GTID

    @classmethod
    def looks_like(cls, text: str) -> bool:
        """Return whether a text is written like a GTID or a set of GTIDs."""
        return bool(_MYSQL.fullmatch(text.strip()) or _MARIADB.fullmatch(text.strip()))

    @classmethod
    def parse(cls, text: str) -> "GtidSet":
        """Parse a set of GTIDs, as MySQL or MariaDB writes it."""
        compact = "".join(text.split())
        if not compact:
            return cls({})
        if _MARIADB.fullmatch(compact):
            gtids = cls({}, is_mariadb=True)
            for gtid in compact.split(","):
                domain, server, number = map(int, gtid.split("-"))
                if number >= gtids.last_number(str(domain)):
                    gtids = gtids.with_range(str(domain), (number, number), server)
            return gtids
        if not _MYSQL.fullmatch(compact):
            raise ConfigurationError(f"not a GTID or a set of them: {text!r}")
        return cls(_parse_mysql_ranges(compact))

    @property
    def text(self) -> str:
        """Return the set as text, as servers accept it."""
        if self.is_mariadb:
            return ",".join(
                f"{domain}-{self.servers[domain]}-{self.last_number(domain)}" for domain in sorted(self.ranges)
            )
        return ",".join(":".join([source, *map(_format_range, self.ranges[source])]) for source in sorted(self.ranges))

    def last_number(self, source: str) -> int:
        """Return the highest transaction number of a source or a domain; -1 when the set has none of it."""
        ranges = self.ranges.get(source)
        return ranges[-1][1] if ranges else -1

    @property
    def is_single(self) -> bool:
        """Return whether it is one transaction and not a set of them."""
        ranges_of_all = [transactions for ranges in self.ranges.values() for transactions in ranges]
        return len(ranges_of_all) == 1 and (self.is_mariadb or ranges_of_all[0][0] == ranges_of_all[0][1])

    def includes(self, other: "GtidSet") -> bool:
        """Return whether the set has every GTID of the other set."""
        return all(
            any(first <= low and high <= last for first, last in self.ranges.get(source, ()))
            for source, ranges in other.ranges.items()
            for low, high in ranges
        )

    def with_range(self, source: str, numbers: Range, server: int = 0) -> "GtidSet":
        """Return the set with a range of GTIDs added. In a domain of MariaDB only the last one counts, whatever came
        before it."""
        if self.is_mariadb:
            return GtidSet({**self.ranges, source: ((0, numbers[1]),)}, True, {**self.servers, source: server})
        before = self.ranges.get(source, ())
        if before and numbers[0] == before[-1][1] + 1:
            merged = (*before[:-1], (before[-1][0], numbers[1]))
        else:
            merged = _merge_ranges([*before, numbers])
        return GtidSet({**self.ranges, source: merged})

    def minus(self, other: "GtidSet") -> "GtidSet":
        """Return the GTIDs that the other set does not have."""
        left = {
            source: _subtract_ranges(ranges, other.ranges.get(source, ())) for source, ranges in self.ranges.items()
        }
        return GtidSet({source: ranges for source, ranges in left.items() if ranges}, self.is_mariadb, self.servers)


def _format_range(numbers: Range) -> str:
    """Return a range of transaction numbers as text, such as `1-5`."""
    first, last = numbers
    return str(first) if first == last else f"{first}-{last}"


def _parse_mysql_ranges(text: str) -> Ranges:
    """Parse MySQL's text of a GTID set into ranges of numbers by source."""
    ranges: dict[str, list[Range]] = {}
    for part in text.split(","):
        source, *rest = part.lower().split(":")
        tag = ""
        for item in rest:
            if match := _RANGE.fullmatch(item):
                first = int(match[1])
                ranges.setdefault(source + tag, []).append((first, int(match[2] or first)))
            elif _TAG.fullmatch(item):
                tag = f":{item}"
            else:
                raise ConfigurationError(f"not a GTID or a set of them: {text!r} has {item!r} where a range belongs")
    return {source: _merge_ranges(match) for source, match in ranges.items()}


def _merge_ranges(ranges: list[Range]) -> tuple[Range, ...]:
    """Return the ranges with those that touch or overlap merged."""
    merged: list[Range] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return tuple(merged)


def _subtract_ranges(ranges: tuple[Range, ...], others: tuple[Range, ...]) -> tuple[Range, ...]:
    """Return the part of the ranges that the other ranges do not cover."""
    left: list[Range] = []
    for first, last in ranges:
        at = first
        for low, high in others:
            if high < at or low > last:
                continue
            if low > at:
                left.append((at, low - 1))
            at = high + 1
        if at <= last:
            left.append((at, last))
    return tuple(left)
