"""Expands references in values: `${env:NAME}`, `${env:NAME:-default}`, `${file:path}`.

A file is text; the line end after its last line is not part of it, and its path may be relative to the folder of the
file that names it. A complaint is one line and never has a value in it.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from penstock.errors import ConfigurationError

ReadFile = Callable[[Path], bytes]
_ENV = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)
_REFERENCE = re.compile(r"\$\{(?P<kind>env|file):(?P<what>[^{}]*)\}")


def expand_references(
    value: Any, path: Path, read: ReadFile = Path.read_bytes, environment: Mapping[str, str] = os.environ
) -> Any:
    """Expand the references in all texts of a value that was read from `path`. Raises ConfigurationError."""
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {key: expand_references(item, path, read, environment) for key, item in items}
    if isinstance(value, list):
        return [expand_references(item, path, read, environment) for item in cast("list[Any]", value)]
    if not isinstance(value, str):
        return value

    def look_up(match: re.Match[str]) -> str:
        if match["kind"] == "env":
            return _look_up_variable(match["what"], path, environment)
        return _read_file(match["what"], path, read)

    return _REFERENCE.sub(look_up, value)


def _look_up_variable(text: str, path: Path, environment: Mapping[str, str]) -> str:
    """Return the value of an environment variable, or its default. Raises ConfigurationError."""
    match = _ENV.fullmatch(text)
    if match is None:
        raise ConfigurationError(f"{path} has a reference that cannot be read: write ${{env:NAME}}, letters and digits")
    name, default = match["name"], match["default"]
    # As in a shell: what is empty counts as not set where there is a default.
    value = environment.get(name) if default is None else environment.get(name) or default
    if value is None:
        raise ConfigurationError(f"{path} asks for the environment variable {name}, which is not set")
    return value


def _read_file(text: str, path: Path, read: ReadFile) -> str:
    """Return the text of a referenced file. Raises ConfigurationError."""
    target = path.parent / text.strip()
    try:
        is_path = b"\0" not in os.fsencode(target)
    except ValueError:
        is_path = False
    if not is_path:
        raise ConfigurationError(f"{path} asks for a file by a name that none can have")
    try:
        content = read(target).decode()
    except OSError as error:
        raise ConfigurationError(f"{path} asks for the file {target}, which cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} asks for the file {target}, which is no text in UTF-8") from None
    return content.removesuffix("\n").removesuffix("\r")
