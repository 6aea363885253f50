"""Arguments of a command → keywords of its function, without typer's own parser.

Typer checks values with pydantic, which takes longer to load than a small log takes to read. This parser knows only
plain, well-formed arguments: for anything else (--help, a mistake, a type it does not know) it returns None, and typer
decides. What it accepts, typer understands in the same way; tests compare the two.
"""

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

from typer.models import ArgumentInfo, OptionInfo

_PLAIN: dict[Any, Callable[[str], Any]] = {str: str, int: int, Path: Path}


@dataclass(frozen=True, slots=True)
class _Parameter:
    """One parameter of the function, as the command line shows it."""

    name: str
    words: tuple[str, ...]
    """Its option's spellings; empty for the arguments without an option."""

    convert: Callable[[str], Any] | None
    """Makes a value of a text; None for a flag, which has no text."""

    is_list: bool
    info: ArgumentInfo | OptionInfo


def parse_quickly(function: Callable[..., Any], arguments: Sequence[str]) -> dict[str, Any] | None:
    """Return the keywords with which typer would call the function; None when typer must decide."""
    parameters = _parameters_of(function)
    if parameters is None:
        return None
    by_word = {word: parameter for parameter in parameters for word in parameter.words}
    unnamed = next((parameter for parameter in parameters if not parameter.words), None)
    values, is_option_over = _defaults(function, parameters), False
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
            if parameter.convert is None:
                if equals:
                    return None
                values[parameter.name] = True
                continue
            text = rest if equals else next(words, "--")
            if not equals and text.partition("=")[0] in {*by_word, "--"}:
                return None
        else:
            parameter = unnamed
        if parameter is None or not _keep(values, given, parameter, text):
            return None
    return values


def _keep(values: dict[str, Any], given: set[str], parameter: _Parameter, text: str) -> bool:
    """Add the value of the text; False when it is not one of the parameter's."""
    try:
        value: Any = parameter.convert(text) if parameter.convert else None
    except ValueError:
        return False
    low, high = parameter.info.min, parameter.info.max
    if (low is not None and value < low) or (high is not None and value > high):
        return False
    if parameter.is_list:
        values[parameter.name] = [*(values[parameter.name] if parameter.name in given else ()), value]
    else:
        values[parameter.name] = value
    given.add(parameter.name)
    return True


def _defaults(function: Callable[..., Any], parameters: Sequence[_Parameter]) -> dict[str, Any]:
    values = {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
    for parameter in parameters:
        variable = parameter.info.envvar
        if isinstance(variable, str) and os.environ.get(variable) and parameter.convert is str:
            values[parameter.name] = os.environ[variable]
    return values


def _parameters_of(function: Callable[..., Any]) -> list[_Parameter] | None:
    """Return what the function takes; None when some of it is more than this module knows."""
    parameters: list[_Parameter] = []
    for name, hint in get_type_hints(function, include_extras=True).items():
        if name == "return":
            continue
        annotation, *details = get_args(hint)
        info = next((detail for detail in details if isinstance(detail, ArgumentInfo | OptionInfo)), None)
        kinds = [kind for kind in (get_args(annotation) or (annotation,)) if kind is not NoneType]
        is_list = getattr(annotation, "__origin__", None) is list
        if len(kinds) == 1 and getattr(kinds[0], "__origin__", None) is list:
            is_list, kinds = True, list(get_args(kinds[0]))
        if info is None or len(kinds) != 1 or (kinds[0] is not bool and kinds[0] not in _PLAIN):
            return None
        words = _spellings(name, info)
        if (kinds[0] is bool and not isinstance(info.default, str)) or (isinstance(info, ArgumentInfo) and not is_list):
            return None
        parameters.append(_Parameter(name, words, _PLAIN.get(kinds[0]), is_list, info))
    return parameters


def _spellings(name: str, info: ArgumentInfo | OptionInfo) -> tuple[str, ...]:
    if isinstance(info, ArgumentInfo):
        return ()
    first = (info.default,) if isinstance(info.default, str) else ()  # where `Annotated` has typer keep it
    return (*first, *(info.param_decls or ())) or (f"--{name.replace('_', '-')}",)
