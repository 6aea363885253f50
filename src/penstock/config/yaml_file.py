"""YAML files as people expect them: `on`, `off`, `yes` and `no` are words, and references are looked up.

Every complaint is one line that names the file.
"""

import re
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError

from penstock.config.references import ReadFile, expand_references
from penstock.errors import ConfigurationError

T = TypeVar("T", bound=BaseModel)
_BOOL_TAG = "tag:yaml.org,2002:bool"


class _Loader(yaml.SafeLoader):
    """YAML 1.2's booleans: true and false only. A key `on` stays a key."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as in the base class
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOL_TAG]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_TRUE_FALSE = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
_Loader.add_implicit_resolver(_BOOL_TAG, _TRUE_FALSE, list("tTfF"))  # pyright: ignore[reportUnknownMemberType]


def load_yaml(path: Path, kind: type[T]) -> T:
    """Read a file and check it against a model."""
    return validate(kind, read_yaml(path), path)


def read_yaml(path: Path, read: ReadFile = Path.read_bytes) -> Any:
    """What a file says, with its references looked up; nothing is an empty mapping."""
    try:
        raw: Any = yaml.load(read(path).decode(), _Loader)  # noqa: S506 - a safe loader, see above
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        raise ConfigurationError(f"{path} is not YAML: {_problem_of(error)}") from None
    except RecursionError:
        raise ConfigurationError(f"{path} is not YAML: it is nested too deeply") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    return expand_references({} if raw is None else raw, path, read)


def validate(kind: type[T], raw: Any, path: Path | str) -> T:
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        raise ConfigurationError(f"{path}: {complaint(error)}") from None


def complaint(error: ValidationError) -> str:
    """The first mistake, without the value that is one: it may be a secret."""
    first = error.errors(include_input=False, include_url=False)[0]
    # What kind of thing something was taken for is in parentheses: that is no key of the file.
    key = ".".join(part for part in map(str, first["loc"]) if not part.startswith("(")) or "the file"
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{key}: {first['msg']}{more}"


def _problem_of(error: yaml.MarkedYAMLError) -> str:
    """Without the lines of the file that PyYAML shows: they may hold a secret."""
    mark = error.problem_mark or error.context_mark
    where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    if isinstance(error, ComposerError | ConstructorError):
        return f"a value that begins with *, & or ! needs quotes{where}"
    what = ", ".join(part for part in (error.context, error.problem) if part)
    return f"{what}{where}"
