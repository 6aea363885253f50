"""Results of checks of a source, each with its remedy."""

from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """Says whether a checked property of a source is fine, deserves a warning, or prevents capture."""

    OK = "ok"
    WARN = "warn"  # capture works, but something that one may want does not
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check of a source: what was checked, the verdict, what was found, and how to fix it."""

    check: str  # what was checked
    verdict: Verdict
    value: str  # what the source has
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.check} is {self.value}" + (f": {self.remedy}" if self.remedy else "")
