"""Results of checks of a source, each with its remedy."""

from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """The outcome of one check of a source: fine, a warning, or a failure that prevents capture."""

    OK = "ok"
    WARN = "warn"  # capture works, but something that one may want does not
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check of a source: what was checked, the verdict, what was found, and how to fix it.

    Finding("binlog_format", Verdict.FAIL, "MIXED", "SET GLOBAL binlog_format = 'ROW'")
    """

    check: str  # what was checked
    verdict: Verdict
    value: str  # what the source has
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.check} is {self.value}" + (f": {self.remedy}" if self.remedy else "")
