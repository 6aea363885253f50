"""Docstrings can be read without the signature: none begins in the middle of a sentence, none uses retired idioms."""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "src" / "penstock"
ROOMS = ("capture", "filter", "inspect", "meta", "model", "schema", "source", "store")
FRAGMENT = re.compile(r"(Of|By|Or|And|As|Whether|Anew|Between|Behind|Into)\b")
IDIOM = re.compile(r"\b(anew|comes? again|goes on|go on|going on|gives? way)\b")


def docstrings(source: str) -> list[tuple[int, str, str]]:
    """Return line, name and docstring of all modules, classes and functions in a source file."""
    return [
        (getattr(node, "lineno", 1), getattr(node, "name", "module"), text)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node))
    ]


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_are_whole_sentences_in_plain_words(room: str) -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} {name}: {text.splitlines()[0]}"
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for line, name, text in docstrings(path.read_text(encoding="utf-8"))
        if FRAGMENT.match(text) or IDIOM.search(text)
    ]
    assert not wrong


def test_fragments_and_idioms_are_found() -> None:
    ((_, name, text),) = docstrings('def end():\n    """Of the log, now: it goes on there."""')
    assert name == "end"
    assert FRAGMENT.match(text)
    assert IDIOM.search(text)
