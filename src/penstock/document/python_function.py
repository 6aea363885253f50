"""A function in Python that a document spec names: found and checked with the spec, loaded wherever it runs.

| the spec names          | it is                                                                               |
|-------------------------|-------------------------------------------------------------------------------------|
| `orders_hook.py:enrich` | a file, relative to the spec; its text goes along to processes that do not have it   |
| `shop.hooks:enrich`     | a module, which each process imports by its name                                    |
"""

import ast
import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from penstock.document.suggestion import suggest
from penstock.errors import ConfigurationError

_NAMES = re.compile(r"(?P<location>.+\.py|[^\W\d]\w*(?:\.[^\W\d]\w*)*):(?P<name>[^\W\d]\w*)")


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """A function by its name, with all that another process needs to load it.

    function = PythonFunction.find("orders_hook.py:enrich", Path("/etc/penstock"))
    function.load()({"number": "A-17"})
    """

    text: str  # as the spec names it
    location: str  # the path of a file, or the name of a module
    name: str
    source: str | None = field(default=None, repr=False)  # of a file; None: the module is imported

    @classmethod
    def find(cls, text: str, folder: Path) -> "PythonFunction":
        """Return the function that a spec in this folder names, after it was loaded once. Raises ConfigurationError."""
        match = _NAMES.fullmatch(text.strip())
        if match is None:
            raise ConfigurationError(f"{text!r} names no function: write FILE.py:FUNCTION, or package.module:FUNCTION")
        location, source = match["location"], None
        if location.endswith(".py"):
            location = str((folder / location).absolute())
            source = _read_source(Path(location))
        function = cls(text.strip(), location, match["name"], source)
        _check_signature(function, function.load())
        return function

    def load(self) -> Callable[[Any], Any]:
        """Return the function; its file or module is executed once in a process. Raises ConfigurationError."""
        return _load(self)

    def describe_failure(self, error: BaseException) -> str:
        """Return what an exception of the function says, as one line, with the line of its file if that is known."""
        module = sys.modules.get(self.location)
        file = self.location if self.source is not None else getattr(module, "__file__", None)
        return f"{self.text}{_describe_line(error, file)}: {_describe_exception(error)}"


@lru_cache(maxsize=64)
def _load(function: PythonFunction) -> Callable[[Any], Any]:
    """Execute the file of a function, or import its module, and return the function."""
    module = _import_module(function) if function.source is None else _execute_file(function, function.source)
    loaded = getattr(module, function.name, None)
    if callable(loaded):
        return loaded
    if loaded is not None:
        raise ConfigurationError(f"{function.location}: {function.name} is no function, but a {type(loaded).__name__}")
    known = [name for name, value in vars(module).items() if callable(value)]
    raise ConfigurationError(f"{function.location} has no function {function.name}{suggest(function.name, known)}")


def _read_source(path: Path) -> str:
    """Return the text of a file in Python."""
    try:
        return importlib.util.decode_source(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {path}: {error.strerror}; a path is relative to the folder of the spec"
        ) from None
    except (SyntaxError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is no Python: {error}") from None


def _execute_file(function: PythonFunction, source: str) -> ModuleType:
    """Return the module that the text of a file is. It has an entry among the modules of this process, without which
    dataclasses and the like do not work in it."""
    name = f"penstock_transform_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    try:
        _check_return(function, ast.parse(source, function.location))
        code = compile(source, function.location, "exec")
    except SyntaxError as error:
        raise ConfigurationError(f"{function.location}, line {error.lineno}: {error.msg}") from None
    except ValueError as error:  # a null byte
        raise ConfigurationError(f"{function.location} is no Python: {error}") from None
    module = ModuleType(name)
    module.__file__ = function.location
    sys.modules[name] = module
    try:
        exec(code, vars(module))  # noqa: S102 - the user's own code, which the spec names
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        line = _describe_line(error, function.location)
        raise ConfigurationError(f"{function.location}{line}: {_describe_exception(error)}") from error
    return module


def _import_module(function: PythonFunction) -> ModuleType:
    """Return a module by its name."""
    try:
        return importlib.import_module(function.location)
    except ModuleNotFoundError as error:
        is_own = function.location == error.name or function.location.startswith(f"{error.name}.")
        remedy = "; install it wherever documents are built, or name a file, as in hooks.py:FUNCTION" if is_own else ""
        raise ConfigurationError(f"cannot import {function.location}: {error}{remedy}") from None
    except (Exception, SystemExit) as error:
        raise ConfigurationError(f"cannot import {function.location}: {_describe_exception(error)}") from error


def _check_signature(function: PythonFunction, loaded: Callable[[Any], Any]) -> None:
    """Raise when a function cannot be called with one argument."""
    try:
        signature = inspect.signature(loaded)
    except ValueError:  # of a function in C
        return
    try:
        signature.bind({})
    except TypeError:
        raise ConfigurationError(
            f"{function.location}: {function.name}{signature} must take one argument, the document"
        ) from None


def _check_return(function: PythonFunction, module: ast.Module) -> None:
    """Raise when a function never returns a value: it would take every document out of the index."""
    for statement in module.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == function.name and not statement.decorator_list:
            returned = [part.value for part in _walk_body(statement) if isinstance(part, ast.Return)]
            if all(value is None or (isinstance(value, ast.Constant) and value.value is None) for value in returned):
                raise ConfigurationError(
                    f"{function.location}, line {statement.lineno}: {function.name} never returns a document; end it"
                    " with `return document`"
                )


def _walk_body(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield all parts of a function, without what is in functions and classes inside it."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        part = pending.pop()
        yield part
        if not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            pending.extend(ast.iter_child_nodes(part))


def _describe_line(error: BaseException, file: str | None) -> str:
    """Return the last line of a file that an exception went through; empty where it went through none."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f", line {lines[-1]}" if lines else ""


def _describe_exception(error: BaseException) -> str:
    """Return an exception as one line, as Python prints it."""
    text = " ".join("".join(traceback.format_exception_only(error)).split())
    return text.encode("utf-8", "backslashreplace").decode()  # half a character would be refused by a database
