"""Lists of destinations, in which `shop{1-10}` stands for shop1 to shop10."""

import re
from collections.abc import Iterable, Iterator

MAX_DESTINATIONS = 10_000
_EXPRESSION = re.compile(r"(?P<prefix>[^{}]*)\{\s*(?P<first>\d+)\s*-\s*(?P<last>\d+)\s*\}(?P<suffix>[^{}]*)")


def expand_destinations(names: Iterable[str]) -> tuple[str, ...]:
    """Return all destinations that a list names, in order and without duplicates. Raises ValueError."""
    return tuple(dict.fromkeys(name for text in names for name in _expand_name(text.strip())))


def _expand_name(text: str) -> Iterator[str]:
    """Yield the destinations that one item of a list names."""
    if "{" not in text and "}" not in text:
        if not text:
            raise ValueError("a destination has no name")
        yield text
        return
    match = _EXPRESSION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no list of destinations: write it as shop{{1-10}}")
    first, last = int(match["first"]), int(match["last"])
    if not first <= last < first + MAX_DESTINATIONS:
        raise ValueError(f"{text!r} is empty, or longer than {MAX_DESTINATIONS}")
    yield from (f"{match['prefix']}{number}{match['suffix']}" for number in range(first, last + 1))
