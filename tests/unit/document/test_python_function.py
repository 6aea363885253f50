"""A function that a spec names: found in a file or a module, loaded where it is needed, and refused in words."""

import pickle
import sys
from pathlib import Path

import pytest

from penstock.document.python_function import PythonFunction
from penstock.errors import ConfigurationError

HOOK = """\
from __future__ import annotations

import dataclasses

COUNT = 3


@dataclasses.dataclass
class Score:
    value: int


def enrich(document):
    def describe(value):
        return f"{value}"

    document["score"] = describe(Score(COUNT).value)
    return document


class Enricher:
    def __call__(self, document):
        return {}


ready = Enricher()
short = lambda document: document


def two(document, other):
    return document


def with_default(document, other=1):
    return document


def forgets(document):
    def inner():
        return document

    document["score"] = 1


def only_none(document):
    if document:
        return
    return None
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "orders_hook.py").write_text(HOOK)
    return tmp_path


def test_a_file_is_found_beside_the_spec_or_by_its_whole_path(folder: Path) -> None:
    for text in ("orders_hook.py:enrich", f"{folder}/orders_hook.py:enrich"):
        assert PythonFunction.find(text, folder).load()({"a": 1}) == {"a": 1, "score": "3"}


@pytest.mark.parametrize("name", ["ready", "short", "with_default"])
def test_whatever_takes_one_argument_is_a_function(folder: Path, name: str) -> None:
    assert PythonFunction.find(f"orders_hook.py:{name}", folder).load()({}) == {}


def test_a_module_is_imported_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_rules").mkdir()
    (tmp_path / "shop_rules" / "hooks.py").write_text("def enrich(document):\n    return document | {'a': 1}\n")
    monkeypatch.syspath_prepend(tmp_path)
    function = PythonFunction.find("shop_rules.hooks:enrich", Path("elsewhere"))
    assert function.source is None
    assert function.load()({}) == {"a": 1}
    assert function.describe_failure(ValueError("bad")) == "shop_rules.hooks:enrich: ValueError: bad"


def test_the_text_of_a_file_goes_along_to_a_process_that_does_not_have_it(folder: Path) -> None:
    sent = pickle.dumps(PythonFunction.find("orders_hook.py:enrich", folder))
    (folder / "orders_hook.py").unlink()
    arrived: PythonFunction = pickle.loads(sent)  # noqa: S301 - our own
    assert arrived.load()({}) == {"score": "3"}
    assert arrived.load() is arrived.load(), "executed once"
    assert "enrich" not in repr(arrived).replace("orders_hook.py:enrich", "").replace("name='enrich'", "")


def test_files_of_one_name_are_told_apart_by_their_text(folder: Path) -> None:
    first = PythonFunction.find("orders_hook.py:enrich", folder)
    (folder / "orders_hook.py").write_text("def enrich(document):\n    return {'b': 2}\n")
    second = PythonFunction.find("orders_hook.py:enrich", folder)
    assert (first.load()({}), second.load()({})) == ({"score": "3"}, {"b": 2})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("enrich", "'enrich' names no function: write FILE.py:FUNCTION, or package.module:FUNCTION"),
        ("orders_hook.py", "names no function"),
        ("orders_hook.py:", "names no function"),
        ("orders_hook.py:a.b", "names no function"),
        ("orders-hook:enrich", "names no function"),
        ("other.py:enrich", "cannot read .*other.py: No such file or directory; a path is relative to the folder of"),
        ("orders_hook.py:enrch", "orders_hook.py has no function enrch: did you mean enrich?"),
        ("orders_hook.py:COUNT", "orders_hook.py: COUNT is no function, but a int"),
        ("orders_hook.py:two", r"orders_hook.py: two\(document, other\) must take one argument, the document"),
        ("orders_hook.py:forgets", "orders_hook.py, line 38: forgets never returns a document; end it with"),
        ("orders_hook.py:only_none", "orders_hook.py, line 45: only_none never returns a document"),
        ("no_such_module.hooks:enrich", "cannot import no_such_module.hooks: No module named 'no_such_module'; inst"),
        ("json:no_such_function", "json has no function no_such_function"),
    ],
)  # fmt: skip
def test_what_is_no_function_is_told(folder: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as raised:
        PythonFunction.find(text, folder)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def enrich(document)\n    return document\n", r"bad.py, line 1: expected ':'"),
        ("x = 1\n  y = 2\n", r"bad.py, line 2: unexpected indent"),
        ("import no_such_library\n", r"bad.py, line 1: ModuleNotFoundError: No module named 'no_such_library'"),
        ("\nraise ValueError('two\\nlines')\n", r"bad.py, line 2: ValueError: two lines"),
        ("import sys\nsys.exit(3)\n", r"bad.py, line 2: SystemExit: 3"),
        ("x = '\0'\n", r"bad.py.*null"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_told_with_its_line(tmp_path: Path, source: str, message: str) -> None:
    (tmp_path / "bad.py").write_text(source)
    before = set(sys.modules)
    with pytest.raises(ConfigurationError, match=message) as raised:
        PythonFunction.find("bad.py:enrich", tmp_path)
    assert "\n" not in str(raised.value)
    assert set(sys.modules) == before


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_bytes(b"x = '\xff'\n")
    with pytest.raises(ConfigurationError, match=r"bad.py is no Python"):
        PythonFunction.find("bad.py:enrich", tmp_path)


def test_a_module_that_fails_is_told_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_shop_rules.py").write_text("import no_such_library\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        ConfigurationError, match=r"cannot import broken_shop_rules: No module named 'no_such_library'$"
    ):
        PythonFunction.find("broken_shop_rules:enrich", tmp_path)
    (tmp_path / "broken_shop_rules.py").write_text("1 / 0\n")
    with pytest.raises(ConfigurationError, match="cannot import broken_shop_rules: ZeroDivisionError: division by"):
        PythonFunction.find("broken_shop_rules:enrich", tmp_path)
