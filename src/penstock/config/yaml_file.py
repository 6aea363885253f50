"""Reads YAML files as people expect them: `on`, `off`, `yes` and `no` are words, and references are expanded.

Every complaint is one line that names the file.
"""

import re
from collections.abc import Iterator
from itertools import chain
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
_MERGE_TAG = "tag:yaml.org,2002:merge"
_MAX_REPEATED = 100_000  # values that aliases may repeat, a long text counting as several
_CHARACTERS_PER_VALUE = 64  # characters that count as one value
_MAX_KEY_CHARACTERS = 64  # characters of a key in a complaint


class _Loader(yaml.SafeLoader):
    """A YAML loader with the booleans of YAML 1.2, true and false only, so that a key `on` stays a key. It refuses keys
    that are written twice in one mapping, and aliases that repeat too much."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as in the base class
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOL_TAG]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def get_single_node(self) -> yaml.Node | None:
        """Return the root node, after its aliases and keys were checked."""
        node = super().get_single_node()
        if node is not None:
            _check_aliases(node)
            self._check_keys(node, set())
        return node

    def _check_keys(self, node: yaml.Node, checked: set[int]) -> None:
        """Raise when a mapping below `node` has a key twice: one of the two values would be lost."""
        if id(node) in checked:
            return
        checked.add(id(node))
        if isinstance(node, yaml.MappingNode):
            lines: dict[object, int] = {}
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    continue
                name = key.value if key.tag == _MERGE_TAG else self.construct_object(key)
                if name in lines:
                    problem = f"the key {str(name)[:_MAX_KEY_CHARACTERS]} of line {lines[name]} is written again"
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
                lines[name] = key.start_mark.line + 1
        for part in _child_nodes(node):
            self._check_keys(part, checked)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return the Python value of a YAML node. An error does not quote the value, which may be a secret."""
        try:
            return super().construct_object(node, deep)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError):
            # What they say may have the value in it.
            problem = "a value looks like a number or a time, and is none: it needs quotes"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from None


_TRUE_FALSE = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
_Loader.add_implicit_resolver(_BOOL_TAG, _TRUE_FALSE, list("tTfF"))  # pyright: ignore[reportUnknownMemberType]


def load_yaml(path: Path, kind: type[T], context: Any = None) -> T:
    """Read a YAML file and validate it against a model, whose validators get the context. Raises ConfigurationError."""
    return validate_settings(kind, read_yaml(path), path, context)


def read_yaml(path: Path, read: ReadFile = Path.read_bytes) -> Any:
    """Return the content of a YAML file with references expanded; an empty file is an empty mapping. Raises
    ConfigurationError."""
    try:
        raw: Any = yaml.load(read(path).decode(), _Loader)  # noqa: S506 - a safe loader, see above
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        raise ConfigurationError(f"{path} is not YAML: {_describe_yaml_error(error)}") from None
    except RecursionError:
        raise ConfigurationError(f"{path} is not YAML: it is nested too deeply") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    except (ValueError, ArithmeticError) as error:
        raise ConfigurationError(f"{path} is not YAML: a value cannot be read ({type(error).__name__})") from None
    try:
        return expand_references({} if raw is None else raw, path, read)
    except RecursionError:
        raise ConfigurationError(f"{path} is nested too deeply") from None


def validate_settings(kind: type[T], raw: Any, path: Path | str, context: Any = None) -> T:
    """Return a model made from raw settings. Raises ConfigurationError that names the file and the key."""
    try:
        return kind.model_validate(raw, context=context)
    except ValidationError as error:
        raise ConfigurationError(f"{path}: {describe_validation_error(error)}") from None


def describe_validation_error(error: ValidationError) -> str:
    """Return the first mistake as one line, without the wrong value: it may be a secret."""
    first = error.errors(include_input=False, include_url=False)[0]
    # What kind of thing something was taken for is in parentheses: that is no key of the file.
    key = ".".join(part for part in map(str, first["loc"]) if not part.startswith("(")) or "the file"
    others = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{key}: {first['msg']}{others}"


def _check_aliases(root: yaml.Node) -> None:
    """Raise when aliases would repeat too many values. They are counted without being expanded."""
    sizes: dict[int, int] = {}  # of nodes with all that is in them; 0 while that is counted

    def measure(node: yaml.Node) -> int:
        size = sizes.get(id(node))
        if size == 0:
            problem = "an alias stands inside of what it repeats"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        if size is None:
            sizes[id(node)] = 0
            size = sizes[id(node)] = _measure_node(node) + sum(map(measure, _child_nodes(node)))
            own[0] += _measure_node(node)
        return size

    own = [0]
    if measure(root) - own[0] > _MAX_REPEATED:
        raise yaml.MarkedYAMLError(problem=f"aliases repeat more than {_MAX_REPEATED} values")


def _measure_node(node: yaml.Node) -> int:
    """Return how many values a node counts as, without its children."""
    return 1 + (len(node.value) // _CHARACTERS_PER_VALUE if isinstance(node, yaml.ScalarNode) else 0)


def _child_nodes(node: yaml.Node) -> Iterator[yaml.Node]:
    """Yield the children of a node."""
    if isinstance(node, yaml.SequenceNode):
        yield from node.value
    elif isinstance(node, yaml.MappingNode):
        yield from chain.from_iterable(node.value)


def _describe_yaml_error(error: yaml.MarkedYAMLError) -> str:
    """Return a YAML error as one line, without the lines of the file that PyYAML shows: they may hold a secret."""
    mark = error.problem_mark or error.context_mark
    where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    if isinstance(error, ComposerError | ConstructorError):
        return f"a value that begins with *, & or ! needs quotes{where}"
    problem = ", ".join(part for part in (error.context, error.problem) if part)
    return f"{problem}{where}"
