"""What was found out about a source, and what mends it."""

from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    OK = "ok"
    WARN = "warn"  # capture works, but something that one may want does not
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    verdict: Verdict
    found: str
    mend: str = ""

    def __str__(self) -> str:
        return f"{self.what} is {self.found}" + (f": {self.mend}" if self.mend else "")
