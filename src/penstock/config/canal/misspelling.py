"""Properties that nobody knows, and the ones that were probably meant."""

from collections.abc import Sequence
from difflib import SequenceMatcher, get_close_matches

from penstock.config.canal.instance_keys import GLOBAL_NAMES, INSTANCE_KEYS, PREFIX
from penstock.config.canal.rules import UNKNOWN, IgnoredKey
from penstock.config.canal.server_keys import SERVER_KEYS

_LIKENESS = 0.85
_KNOWN = {key.lower(): key for key in (*SERVER_KEYS.keys, *INSTANCE_KEYS.keys)}


def suggest_key(key: str) -> str | None:
    """Return the property that is written almost as `key`, which is none; for one destination, with its name in it."""
    likeness, meant = _closest(key)
    destination, dot, name = key.removeprefix(PREFIX).partition(".")
    if key.startswith(PREFIX) and dot:
        for form in (name, f"global.{name}"):
            other, known = _closest(PREFIX + form)
            short = known.removeprefix(PREFIX).removeprefix("global.")
            if other > likeness and (form == name or short in GLOBAL_NAMES):
                likeness, meant = other, f"{PREFIX}{destination}.{short}"
    return meant or None


def _closest(key: str) -> tuple[float, str]:
    """Return the known property that is most like `key`, and how like it is; nothing when none is."""
    close = get_close_matches(key.lower(), _KNOWN, 1, _LIKENESS)
    return (SequenceMatcher(None, close[0], key.lower()).ratio(), _KNOWN[close[0]]) if close else (0.0, "")


def describe_misspellings(ignored: Sequence[IgnoredKey]) -> list[str]:
    """Return a sentence for each ignored key that looks like a property of canal and is none."""
    found = [(key, suggest_key(key)) for key, reason in ignored if reason == UNKNOWN.reason]
    return [f"{key} is not a property of canal: did you mean {meant}?" for key, meant in found if meant is not None]
