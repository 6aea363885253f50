"""A range of integers, as people write it for keys: `1000..1999`, `1000..` or `..1999`."""

import re
from dataclasses import dataclass

from penstock.errors import ConfigurationError

_FORM = re.compile(r"(-?\d+)?\.\.(-?\d+)?")


@dataclass(frozen=True, slots=True)
class IntegerRange:
    """Integers from `low` up to `high`, both included; None is no limit.

    5 in IntegerRange.parse("1..7")  # True
    """

    low: int | None
    high: int | None

    @classmethod
    def parse(cls, text: str) -> "IntegerRange":
        """Return the range that the value of `--range` means. Raises ConfigurationError for another text, and for an
        empty range."""
        match = _FORM.fullmatch(text.strip())
        if match is None or not any(match.groups()):
            raise ConfigurationError(f"--range is FIRST..LAST, FIRST.. or ..LAST, such as 1000..1999, not {text!r}")
        low, high = (None if part is None else int(part) for part in match.groups())
        if low is not None and high is not None and low > high:
            raise ConfigurationError(f"--range {text} is empty: {low} is greater than {high}")
        return cls(low, high)

    def __contains__(self, value: int) -> bool:
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)
