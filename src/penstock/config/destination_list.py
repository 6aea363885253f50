"""Names of destinations: as they are, or several at once, `shop{1-10}`."""

import re
from collections.abc import Iterable, Iterator

MOST = 10_000
_EXPRESSION = re.compile(r"(?P<prefix>[^{}]*)\{\s*(?P<first>\d+)\s*-\s*(?P<last>\d+)\s*\}(?P<suffix>[^{}]*)")


def expand_destinations(names: Iterable[str]) -> tuple[str, ...]:
    """In their order, each once."""
    return tuple(dict.fromkeys(name for text in names for name in _expanded(text.strip())))


def _expanded(text: str) -> Iterator[str]:
    if "{" not in text and "}" not in text:
        if not text:
            raise ValueError("a destination has no name")
        yield text
        return
    found = _EXPRESSION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no list of destinations: write it as shop{{1-10}}")
    first, last = int(found["first"]), int(found["last"])
    if not first <= last < first + MOST:
        raise ValueError(f"{text!r} is empty, or longer than {MOST}")
    yield from (f"{found['prefix']}{number}{found['suffix']}" for number in range(first, last + 1))
