"""YAML files as people expect them: `on`, `off`, `yes` and `no` are words, `${env:NAME}` is looked up.

Every complaint is one line that names the file.
"""

import os
import re
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml
from pydantic import BaseModel, ValidationError

from penstock.errors import ConfigurationError

T = TypeVar("T", bound=BaseModel)
_REFERENCE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
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
    try:
        raw: Any = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506 - a safe loader, see above
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    return _validated(kind, _expanded(raw or {}, path), path)


def _validated(kind: type[T], raw: Any, path: Path) -> T:
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        # What kind of thing something was taken for is in parentheses: that is no key of the file.
        key = ".".join(part for part in map(str, first["loc"]) if not part.startswith("(")) or "the file"
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise ConfigurationError(f"{path}: {key}: {first['msg']}{more}") from None


def _expanded(value: Any, path: Path) -> Any:
    if isinstance(value, dict):
        return {key: _expanded(item, path) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list):
        return [_expanded(item, path) for item in cast("list[Any]", value)]
    if not isinstance(value, str):
        return value

    def lookup(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in os.environ:
            raise ConfigurationError(f"{path} asks for the environment variable {name}, which is not set")
        return os.environ[name]

    return _REFERENCE.sub(lookup, value)
