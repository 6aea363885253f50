"""Values of options as Spark gives them, as text, read strictly: a misspelled one is an error and no default."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from penstock.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a format, with its default and its meaning for the documentation."""

    name: str
    default: str
    meaning: str
    modes: str = "batch, stream"


def check_known(given: Mapping[str, str], options: Sequence[Option]) -> None:
    """Raise ConfigurationError for a name that no option has, with the one that may be meant."""
    names = {option.name.lower(): option.name for option in options}
    unknown = sorted(given.keys() - names.keys())
    if unknown:
        near = get_close_matches(unknown[0], names, 1)
        meant = f"did you mean {names[near[0]]}? " if near else ""
        raise ConfigurationError(f"unknown option {', '.join(unknown)}: {meant}there are {', '.join(names.values())}")


def read_flag(given: Mapping[str, str], name: str) -> bool:
    """Return an option that is true or false; false when it is not given."""
    text = (given.get(name.lower()) or "false").lower()
    if text not in {"true", "false"}:
        raise ConfigurationError(f"the option {name} is true or false, not {text!r}")
    return text == "true"


def read_number(given: Mapping[str, str], name: str, default: int, *, least: int = 1, most: int = (1 << 63) - 1) -> int:
    """Return an option that is a whole number."""
    text = given.get(name.lower())
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
        bounds = "a positive whole number" if least == 1 else f"a whole number from {least} to {most}"
        raise ConfigurationError(f"the option {name} must be {bounds}, not {text!r}")
    return int(text)


def read_choice(given: Mapping[str, str], name: str, choices: Sequence[str]) -> str:
    """Return an option that is one of these words; the first one when it is not given."""
    text = given.get(name.lower()) or choices[0]
    if text not in choices:
        raise ConfigurationError(f"the option {name} is one of {', '.join(choices)}, not {text!r}")
    return text
