"""Suggests the property that was probably meant for one that does not exist."""

from collections.abc import Sequence
from difflib import SequenceMatcher, get_close_matches

from penstock.config.canal.instance_keys import GLOBAL_NAMES, INSTANCE_KEYS, PREFIX
from penstock.config.canal.rules import UNKNOWN, IgnoredKey
from penstock.config.canal.server_keys import SERVER_KEYS

_LIKENESS = 0.85
_KNOWN = {key.lower(): key for key in (*SERVER_KEYS.keys, *INSTANCE_KEYS.keys)}


def suggest_key(key: str) -> str | None:
    """Return the known property that is spelled almost like `key`, or None; for a property of one destination, with its
    name in it."""
    likeness, meant = _find_closest(key)
    destination, dot, name = key.removeprefix(PREFIX).partition(".")
    if key.startswith(PREFIX) and dot:
        for form in (name, f"global.{name}"):
            other, known = _find_closest(PREFIX + form)
            short = known.removeprefix(PREFIX).removeprefix("global.")
            if other > likeness and (form == name or short in GLOBAL_NAMES):
                likeness, meant = other, f"{PREFIX}{destination}.{short}"
    return meant or None


def _find_closest(key: str) -> tuple[float, str]:
    """Return the known property that is most similar to `key`, and its similarity; 0 and nothing when none is."""
    close = get_close_matches(key.lower(), _KNOWN, 1, _LIKENESS)
    return (SequenceMatcher(None, close[0], key.lower()).ratio(), _KNOWN[close[0]]) if close else (0.0, "")


def describe_misspellings(ignored: Sequence[IgnoredKey]) -> list[str]:
    """Return a sentence for each ignored key that looks like a misspelled property of canal."""
    suggestions = [(key, suggest_key(key)) for key, reason in ignored if reason == UNKNOWN.reason]
    return [
        f"{key} is not a property of canal: did you mean {meant}?" for key, meant in suggestions if meant is not None
    ]
