"""What was found out about a source, and what mends it."""

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

    what: str
    verdict: Verdict
    found: str
    mend: str = ""

    def __str__(self) -> str:
        return f"{self.what} is {self.found}" + (f": {self.mend}" if self.mend else "")
