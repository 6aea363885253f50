"""Every log line begins with an event name, and one about an instance has its destination."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[3] / "src" / "penstock"
METHODS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
# What works for an instance, or for a client of one.
ROOMS = ("capture", "client", "filter", "group", "instance", "meta", "schema", "source", "store")
# An election names by its label what it is about: a destination, or a pipeline.
FILES = ("coordinate/client_lock.py", "server/flight/errors.py")
ELECTIONS = ("coordinate/callbacks.py", "coordinate/election.py", "coordinate/election_state.py")
# They read tables of a source for whoever asks: a snapshot or an index sync, of which no instance need know.
WITHOUT_INSTANCE = {"source/query.py", "source/visibility.py"}


def log_lines(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in METHODS
            and ast.unparse(node.func.value) == "log"
        ):
            text = node.args[node.func.attr == "log"]
            yield node.lineno, str(text.value) if isinstance(text, ast.Constant) else ast.unparse(text)


def files_of_instances() -> list[str]:
    names = [str(path.relative_to(SOURCE)) for room in ROOMS for path in sorted((SOURCE / room).rglob("*.py"))]
    return [name for name in (*names, *FILES) if name not in WITHOUT_INSTANCE and [*log_lines(SOURCE / name)]]


@pytest.mark.parametrize("name", files_of_instances())
def test_a_log_line_of_an_instance_names_its_destination(name: str) -> None:
    lacking = [f"{name}:{line}: {text}" for line, text in log_lines(SOURCE / name) if "destination=%" not in text]
    assert not lacking, lacking


@pytest.mark.parametrize("name", ELECTIONS)
def test_a_log_line_of_an_election_has_its_label(name: str) -> None:
    calls = [
        ast.unparse(node)
        for node in ast.walk(ast.parse((SOURCE / name).read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("log.")
    ]
    assert calls
    assert not [call for call in calls if "label" not in call]


def test_a_log_line_begins_with_an_event_and_not_with_a_value() -> None:
    """The name of an event is the same in each of its lines, so that they can be searched and counted."""
    wrong = [
        f"{path.name}:{line}: {text}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, text in log_lines(path)
        if not re.match(r"%s destination=|[A-Za-z][\w' -]+", text)
    ]
    assert not wrong, wrong
