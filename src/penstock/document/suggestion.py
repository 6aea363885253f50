"""What may have been meant by a name that is not known."""

from collections.abc import Iterable
from difflib import get_close_matches


def suggest(name: str, known: Iterable[str]) -> str:
    """Return the question whether a known name was meant; empty where none is alike."""
    by_folded = {text.casefold(): text for text in known}
    close = get_close_matches(name.casefold(), by_folded, n=1)
    return f": did you mean {by_folded[close[0]]}?" if close else ""
