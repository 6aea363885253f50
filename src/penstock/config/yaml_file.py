"""YAML files as people expect them: `on`, `off`, `yes` and `no` are words, and references are looked up.

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
_MOST_REPEATED = 100_000  # values that aliases may repeat, a long text counting as several
_TEXT = 64  # characters that count as one value
_SHOWN = 64  # characters of a key in a complaint


class _Loader(yaml.SafeLoader):
    """YAML 1.2's booleans: true and false only. A key `on` stays a key. Aliases that repeat too much, and keys that are
    written twice in one mapping, are refused before anything is made of them."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as in the base class
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOL_TAG]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def get_single_node(self) -> yaml.Node | None:
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
                    problem = f"the key {str(name)[:_SHOWN]} of line {lines[name]} is written again"
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
                lines[name] = key.start_mark.line + 1
        for part in _parts(node):
            self._check_keys(part, checked)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError):
            # What they say may have the value in it.
            problem = "a value looks like a number or a time, and is none: it needs quotes"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from None


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
    except (ValueError, ArithmeticError) as error:
        raise ConfigurationError(f"{path} is not YAML: a value cannot be read ({type(error).__name__})") from None
    try:
        return expand_references({} if raw is None else raw, path, read)
    except RecursionError:
        raise ConfigurationError(f"{path} is nested too deeply") from None


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


def _check_aliases(root: yaml.Node) -> None:
    """What they repeat is counted without repeating it."""
    sizes: dict[int, int] = {}  # of nodes with all that is in them; 0 while that is counted

    def size_of(node: yaml.Node) -> int:
        size = sizes.get(id(node))
        if size == 0:
            problem = "an alias stands inside of what it repeats"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        if size is None:
            sizes[id(node)] = 0
            size = sizes[id(node)] = _own_size(node) + sum(map(size_of, _parts(node)))
            own[0] += _own_size(node)
        return size

    own = [0]
    if size_of(root) - own[0] > _MOST_REPEATED:
        raise yaml.MarkedYAMLError(problem=f"aliases repeat more than {_MOST_REPEATED} values")


def _own_size(node: yaml.Node) -> int:
    return 1 + (len(node.value) // _TEXT if isinstance(node, yaml.ScalarNode) else 0)


def _parts(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        yield from node.value
    elif isinstance(node, yaml.MappingNode):
        yield from chain.from_iterable(node.value)


def _problem_of(error: yaml.MarkedYAMLError) -> str:
    """Without the lines of the file that PyYAML shows: they may hold a secret."""
    mark = error.problem_mark or error.context_mark
    where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    if isinstance(error, ComposerError | ConstructorError):
        return f"a value that begins with *, & or ! needs quotes{where}"
    what = ", ".join(part for part in (error.context, error.problem) if part)
    return f"{what}{where}"
