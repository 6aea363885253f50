"""Docstrings can be read without the signature: none begins in the middle of a sentence, none uses retired idioms, and
every public name in the package has one. The pages of docs/ keep to the same words."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "src" / "penstock"
ROOMS = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())
PAGES = sorted([*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")])
FRAGMENT = re.compile(r"(Of|By|Or|And|As|Whether|Anew|Between|Behind|Into|Gives?\s*\()\b")
QUESTION = re.compile(r"(How|Which|Where|Why|When|Who)\b")  # as a title of a module it is fine
IDIOM = re.compile(r"\b(anew|comes? again|came again|goes on|go on|going on|gone on|went on|gives? way|gave way)\b")
Documented = ast.Module | ast.ClassDef | ast.FunctionDef


def docstrings(source: str) -> list[tuple[int, str, str]]:
    """Return line, name and docstring of all modules, classes and functions in a source file."""
    return [
        (getattr(node, "lineno", 1), getattr(node, "name", "module"), text)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, Documented) and (text := ast.get_docstring(node))
    ]


def undocumented(node: ast.AST, prefix: str = "") -> Iterator[str]:
    """Yield the public classes, functions and methods below a node that have no docstring."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef) and not child.name.startswith("_"):
            has_own = any(
                isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__doc__" for line in child.body
            )
            if not ast.get_docstring(child) and not has_own:
                yield f"{prefix}{child.name}"
            if isinstance(child, ast.ClassDef):
                yield from undocumented(child, f"{prefix}{child.name}.")


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_are_whole_sentences_in_plain_words(room: str) -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} {name}: {text.splitlines()[0]}"
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for line, name, text in docstrings(path.read_text(encoding="utf-8"))
        if FRAGMENT.match(text) or IDIOM.search(text) or (name != "module" and QUESTION.match(text))
    ]
    assert not wrong


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_has_a_docstring(room: str) -> None:
    missing = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for name in undocumented(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not missing


@pytest.mark.parametrize("folder", ["tests", "benchmarks", "tools"])
def test_docstrings_of_tests_and_benchmarks_use_no_retired_idioms(folder: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line} {name}: {text.splitlines()[0]}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path != Path(__file__)
        for line, name, text in docstrings(path.read_text(encoding="utf-8"))
        if IDIOM.search(text)
    ]
    assert not wrong


def test_pages_use_no_retired_idioms() -> None:
    assert len(PAGES) > 10
    wrong = [
        f"{path.name}:{number}: {match[0]}"
        for path in PAGES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (match := IDIOM.search(line))
    ]
    assert not wrong


def test_fragments_and_idioms_are_found() -> None:
    ((_, name, text),) = docstrings('def end():\n    """Of the log, now: it goes on there."""')
    assert name == "end"
    assert FRAGMENT.match(text)
    assert IDIOM.search(text)
    assert QUESTION.match("How far it is.")
    assert list(undocumented(ast.parse("class A:\n    '''A.'''\n    def b(self): ...\n    def _c(self): ..."))) == [
        "A.b"
    ]
