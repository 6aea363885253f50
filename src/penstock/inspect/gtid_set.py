"""Sets of GTIDs as people and servers write them.

MySQL     uuid:1-5:9, uuid:tag:1-3     everything in these ranges
MariaDB   0-1-25,1-2-30                in each domain everything up to this number
"""

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.binlog.arrays import texts, view
from penstock.errors import ConfigurationError

_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_MYSQL = re.compile(rf"{_UUID}(?::[\w-]+)+(?:\s*,\s*{_UUID}(?::[\w-]+)+)*")
_MARIADB = re.compile(r"\d+-\d+-\d+(?:\s*,\s*\d+-\d+-\d+)*")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_TAG = re.compile(r"[a-z_][a-z0-9_]*", re.IGNORECASE)

Ranges = dict[str, list[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class GtidSet:
    text: str
    ranges: Ranges  # source (uuid, uuid:tag, or domain) → first and last number, both inside
    is_mariadb: bool

    @classmethod
    def looks_like(cls, text: str) -> bool:
        return bool(_MYSQL.fullmatch(text.strip()) or _MARIADB.fullmatch(text.strip()))

    @classmethod
    def parse(cls, text: str) -> "GtidSet":
        compact = "".join(text.split())
        if not compact:
            return cls("", {}, is_mariadb=False)
        if _MARIADB.fullmatch(compact):
            ranges: Ranges = {}
            for gtid in compact.split(","):
                domain, _, number = gtid.split("-")
                ranges.setdefault(str(int(domain)), []).append((0, int(number)))
            return cls(compact, ranges, is_mariadb=True)
        if not _MYSQL.fullmatch(compact):
            raise ConfigurationError(f"not a GTID or a set of them: {text!r}")
        return cls(compact, _mysql_ranges(compact), is_mariadb=False)

    @property
    def is_single(self) -> bool:
        """One transaction, not a set of them."""
        if self.is_mariadb:
            return "," not in self.text
        return len(self.ranges) == 1 and all(len(r) == 1 and r[0][0] == r[0][1] for r in self.ranges.values())

    def includes(self, other: "GtidSet") -> bool:
        """Every GTID of the other set."""
        return all(
            any(first <= low and high <= last for first, last in self.ranges.get(source, []))
            for source, ranges in other.ranges.items()
            for low, high in ranges
        )

    def contains(self, gtids: pa.Array) -> NDArray[np.bool_]:
        """Which of these GTIDs, as text, are in the set; a null is not."""
        found = np.zeros(len(gtids), np.bool_)
        pattern = r"^(?P<source>\d+)-\d+-(?P<number>\d+)$" if self.is_mariadb else r"^(?P<source>.*):(?P<number>\d+)$"
        sources, texts_of_numbers = pc.extract_regex(gtids, pattern).flatten()
        numbers = view(texts_of_numbers.cast(pa.uint64()))
        for source, ranges in self.ranges.items():
            is_own = truths(pc.equal(pc.utf8_lower(sources), texts([source])[0]))
            for first, last in ranges:
                found |= is_own & (numbers >= first) & (numbers <= last)
        return found


def truths(array: pa.Array) -> NDArray[np.bool_]:
    """Of an array of booleans; null is false. (Arrow's own way imports pandas.)"""
    found = np.ones(len(array), np.bool_)
    for buffer in array.buffers():
        if buffer is not None:
            bits = np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")
            found &= bits[array.offset : array.offset + len(array)].astype(np.bool_)
    return found


def _mysql_ranges(text: str) -> Ranges:
    ranges: Ranges = {}
    for part in text.split(","):
        source, *rest = part.lower().split(":")
        tag = ""
        for item in rest:
            if found := _RANGE.fullmatch(item):
                first = int(found[1])
                ranges.setdefault(source + tag, []).append((first, int(found[2] or first)))
            elif _TAG.fullmatch(item):
                tag = f":{item}"
            else:
                raise ConfigurationError(f"not a GTID or a set of them: {text!r} has {item!r} where a range belongs")
    return {source: _merged(found) for source, found in ranges.items()}


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges that touch are one."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found
