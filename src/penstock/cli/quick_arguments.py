"""Arguments of a command → keywords of its function, without typer.

Typer, with what it loads to check values, takes longer to load than a small log takes to read. This parser knows only
plain, well-formed arguments: for anything else (--help, a mistake) it returns None, and typer decides. What it accepts,
typer understands in the same way; tests compare the two.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class CommandParameter:
    """One parameter of a command's function, as the command line shows it."""

    name: str
    words: tuple[str, ...]
    """Its option's spellings; empty for the arguments without an option."""

    kind: type[str] | type[int] | type[Path] | type[bool] = str
    """Makes a value of a text; a bool is a flag, which has no text."""

    is_list: bool = False
    default: Any = None
    low: int | None = None
    high: int | None = None
    variable: str = ""
    """Of the environment, which gives the value where no argument does."""


def parse_quickly(parameters: Sequence[CommandParameter], arguments: Sequence[str]) -> dict[str, Any] | None:
    """Return the keywords with which typer would call the function; None when typer must decide."""
    by_word = {word: parameter for parameter in parameters for word in parameter.words}
    unnamed = next((parameter for parameter in parameters if not parameter.words), None)
    values, is_option_over = _default_values(parameters), False
    given: set[str] = set()
    words = iter(arguments)
    for word in words:
        if word == "--" and not is_option_over:
            is_option_over = True
            continue
        text = word
        if word.startswith("-") and word != "-" and not is_option_over:
            spelling, equals, rest = word.partition("=")
            parameter = by_word.get(spelling)
            if parameter is None or not word.startswith("--"):
                return None
            if parameter.kind is bool:
                if equals:
                    return None
                values[parameter.name] = True
                continue
            text = rest if equals else next(words, "--")
            if not equals and text.partition("=")[0] in {*by_word, "--"}:
                return None
        else:
            parameter = unnamed
        if parameter is None or not _add_value(values, given, parameter, text):
            return None
    return values


def _add_value(values: dict[str, Any], given: set[str], parameter: CommandParameter, text: str) -> bool:
    """Add the value that a text stands for; return False if the parameter does not accept it."""
    try:
        value: Any = parameter.kind(text)
    except ValueError:
        return False
    if (parameter.low is not None and value < parameter.low) or (parameter.high is not None and value > parameter.high):
        return False
    if parameter.is_list:
        values[parameter.name] = [*(values[parameter.name] if parameter.name in given else ()), value]
    else:
        values[parameter.name] = value
    given.add(parameter.name)
    return True


def _default_values(parameters: Sequence[CommandParameter]) -> dict[str, Any]:
    """Return the default of each parameter."""
    return {
        parameter.name: (os.environ.get(parameter.variable) if parameter.variable else None) or parameter.default
        for parameter in parameters
    }
