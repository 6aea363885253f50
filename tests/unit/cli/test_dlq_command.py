"""`penstock dlq`: dead letters are listed, shown, written again and dropped."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.cli import app
from penstock.errors import ConfigurationError, PenstockError, SinkUnavailableError
from penstock.search import FieldKind, Rejection
from penstock.search.dead_letters import DeadLetters, dead_letters_path
from penstock.search.embedded import EmbeddedIndex
from penstock.spark.sync_terms import begin_term
from tests.support.search_contract import contents, table


def run(*arguments: object, code: int = 0, answer: str = "") -> str:
    result = CliRunner().invoke(app, ["dlq", *map(str, arguments)], input=answer)
    if isinstance(result.exception, PenstockError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.stdout


def run_json(*arguments: object, code: int = 0) -> Any:
    return json.loads(run(*arguments, "--output", "json", code=code))


def letter(key: str, version: int, document: str | None, routing: str | None = None) -> Rejection:
    return Rejection(key, "field 'stock' is declared integer", version, routing, document)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "product"
    folder.mkdir()
    return folder


@pytest.fixture
def letters(checkpoint: Path) -> Iterator[DeadLetters]:
    with DeadLetters.open(dead_letters_path(checkpoint), clock=lambda: 1_700_000_000.0) as letters:
        letters.add(
            "product",
            [letter("1", 5, '{"stock": 7}', "fr"), letter("2", 5, '{"stock": "many"}'), letter("3", 5, None)],
            "binlog.000007:4849",
            "0-1-4711",
        )
        yield letters


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with EmbeddedIndex.open(tmp_path / "index") as index:
        index.prepare({"stock": FieldKind.INTEGER})
        index.write(table(("1", 4, {"stock": 6}), ("3", 9, {"stock": 9})))
    return tmp_path / "index"


def test_letters_are_listed_without_their_documents(checkpoint: Path, letters: DeadLetters) -> None:
    first, second, *_ = run("list", checkpoint).splitlines()
    assert first.split() == ["number", "index", "id", "version", "attempts", "last", "at", "position", "reason"]
    assert second == (
        "1       product  1   5        1         2023-11-14T22:13:20+00:00  binlog.000007:4849  "
        "field 'stock' is declared integer"
    )
    listed = run_json("list", checkpoint, "--after", 1, "--limit", 1)
    assert (listed["count"], [entry["id"] for entry in listed["letters"]]) == (3, ["2"])
    assert "document" not in listed["letters"][0]
    assert run("list", checkpoint, "--limit", 2).endswith("2 of 3; the next ones: --after 2\n")
    assert run_json("list", checkpoint, "--name", "brand") == {"count": 0, "letters": []}
    assert letters.count() == 3


def test_a_pipeline_without_letters_has_none_and_gets_no_file(checkpoint: Path) -> None:
    assert run("list", checkpoint) == "no dead letters\n"
    assert run_json("retry", checkpoint, "--index", checkpoint) == {"written": 0, "stale": 0, "refused": []}
    assert not dead_letters_path(checkpoint).exists()
    with pytest.raises(ConfigurationError, match="there is no checkpoint"):
        run("list", checkpoint / "other")


@pytest.mark.usefixtures("letters")
def test_a_letter_is_shown_with_its_document(checkpoint: Path) -> None:
    shown = run_json("show", checkpoint, 1)
    assert shown == {
        "number": 1,
        "index": "product",
        "id": "1",
        "version": 5,
        "routing": "fr",
        "document": '{"stock": 7}',
        "reason": "field 'stock' is declared integer",
        "position": "binlog.000007:4849",
        "gtid": "0-1-4711",
        "first_at": "2023-11-14T22:13:20+00:00",
        "last_at": "2023-11-14T22:13:20+00:00",
        "attempts": 1,
        "before_transform": False,
    }
    assert run("show", checkpoint, 1).endswith('document: {"stock": 7}\n')
    assert run("show", checkpoint, 3).endswith("a delete, without a document\n")
    with pytest.raises(ConfigurationError, match="no dead letter 9"):
        run("show", checkpoint, 9)


def test_a_retry_keeps_versions_and_what_is_refused_again(checkpoint: Path, letters: DeadLetters, folder: Path) -> None:
    report = run_json("retry", checkpoint, "--index", folder, code=1)
    assert (report["written"], report["stale"]) == (1, 1)
    ((number, key),) = [(entry["number"], entry["id"]) for entry in report["refused"]]
    assert (number, key) == (2, "2")
    assert [(entry.id, entry.attempts) for entry in letters.read_page()] == [("2", 2)]
    with EmbeddedIndex.open(folder) as index:
        assert contents(index) == {"1": (5, {"stock": 7}), "3": (9, {"stock": 9})}
        assert [page.column("routing").to_pylist() for page in index.find_ids("stock", ["7"])] == [["fr"]]


def test_a_retry_of_some_leaves_the_others(checkpoint: Path, letters: DeadLetters, folder: Path) -> None:
    assert run("retry", checkpoint, 1, "--index", folder) == "written 1, newer in the index 0, refused again 0\n"
    assert [entry.id for entry in letters.read_page()] == ["2", "3"]


def test_a_retry_of_more_than_a_page_is_complete(checkpoint: Path, letters: DeadLetters, folder: Path) -> None:
    letters.add("product", [letter(f"k{row}", 5, '{"stock": 1}') for row in range(1234)])
    report = run_json("retry", checkpoint, "--index", folder, code=1)
    assert (report["written"], report["stale"], len(report["refused"])) == (1235, 1, 1)
    assert letters.count() == 1


def test_an_index_that_cannot_be_written_costs_no_letter(checkpoint: Path, letters: DeadLetters, folder: Path) -> None:
    with EmbeddedIndex.open(folder), pytest.raises(SinkUnavailableError, match="written by somebody else"):
        run("retry", checkpoint, "--index", folder)
    assert [entry.attempts for entry in letters.read_page()] == [1, 1, 1]


def test_a_folder_takes_the_letters_of_one_index(checkpoint: Path, letters: DeadLetters, folder: Path) -> None:
    letters.add("brand", [letter("1", 6, '{"stock": 70}')])
    with pytest.raises(ConfigurationError, match="--name"):
        run("retry", checkpoint, "--index", folder)
    assert run_json("retry", checkpoint, "--index", folder, "--name", "brand")["written"] == 1
    assert letters.count("product") == 3


HOOK = """
def enrich(document):
    if document["stock"] is None:
        return None
    return document | {"stock": document["stock"] + 1}
"""


@pytest.fixture
def spec(checkpoint: Path, letters: DeadLetters, tmp_path: Path) -> Path:
    """A spec with a transform, and letters with documents from before it."""
    letters.drop([1, 2, 3])
    documents = {"1": '{"stock":null}', "2": '{"stock":7}', "4": '{"stock":1e30}', "5": '{"stock":"many"}'}
    rejections = [letter(key, 5, text) for key, text in documents.items()]
    letters.add("product", [*(replace(item, before_transform=True) for item in rejections), letter("9", 5, None)])
    (tmp_path / "hook.py").write_text(HOOK)
    path = tmp_path / "product.yml"
    root = "root: {table: shop.product, fields: [stock]}\n"
    path.write_text(f"index: product\ntransform: hook.py:enrich\n{root}")
    (tmp_path / "plain.yml").write_text(f"index: product\n{root}")
    return path


def test_a_retry_runs_the_transform_again(checkpoint: Path, letters: DeadLetters, folder: Path, spec: Path) -> None:
    report = run_json("retry", checkpoint, "--index", folder, "--spec", spec, code=1)
    assert (report["written"], report["stale"]) == (3, 0)
    reasons = {entry["id"]: entry["reason"] for entry in report["refused"]}
    assert reasons["5"] == 'transform hook.py:enrich, line 5: TypeError: can only concatenate str (not "int") to str'
    assert set(reasons) == {"4", "5"}
    with EmbeddedIndex.open(folder) as index:
        assert contents(index) == {"2": (5, {"stock": 8}), "3": (9, {"stock": 9})}, "1 was deleted"
    kept = {entry.id: entry for entry in letters.read_page()}
    assert {key: (entry.document, entry.attempts) for key, entry in kept.items()} == {
        "4": ('{"stock":1e30}', 2), "5": ('{"stock":"many"}', 2),
    }  # fmt: skip
    assert {key: entry.reason for key, entry in kept.items()} == reasons
    assert all(entry.before_transform for entry in kept.values())
    spec.with_name("hook.py").write_text("def enrich(document):\n    return {'stock': 3}\n")
    assert run_json("retry", checkpoint, "--index", folder, "--spec", spec)["written"] == 2
    assert not letters.count()


def test_a_document_from_before_a_transform_is_not_written_without_it(
    checkpoint: Path, letters: DeadLetters, folder: Path, spec: Path
) -> None:
    other = spec.with_name("other.yml")
    other.write_text("index: other\nroot: {table: shop.product, fields: [stock]}\n")
    for options in ((), ("--spec", other)):
        with pytest.raises(ConfigurationError, match=r"of index 'product' has its document .* name the spec, which"):
            run("retry", checkpoint, "--index", folder, *options)
    assert [entry.attempts for entry in letters.read_page()] == [1] * 5
    assert [entry.reason for entry in letters.read_page()] == ["field 'stock' is declared integer"] * 5
    with EmbeddedIndex.open(folder) as index:
        assert contents(index) == {"1": (4, {"stock": 6}), "3": (9, {"stock": 9})}
    plain = spec.with_name("plain.yml")
    assert run_json("retry", checkpoint, 5, "--index", folder, "--spec", plain)["written"] == 1
    with EmbeddedIndex.open(folder) as index:
        assert contents(index)["2"] == (5, {"stock": 7}), "a spec without a transform wants documents as they are"


def test_a_letter_from_before_a_transform_is_shown_as_that(checkpoint: Path, spec: Path) -> None:
    assert run("show", checkpoint, 5).endswith('\ndocument before its transform: {"stock":7}\n')
    assert run_json("show", checkpoint, 5)["before_transform"] is True
    spec.with_name("hook.py").unlink()
    with pytest.raises(ConfigurationError, match=r"line 2: transform: cannot read"):
        run("retry", checkpoint, "--index", spec, "--spec", spec)


def test_letters_are_dropped_by_number_or_all_of_them(checkpoint: Path, letters: DeadLetters) -> None:
    with pytest.raises(ConfigurationError, match="--all"):
        run("drop", checkpoint)
    assert run("drop", checkpoint, 1, answer="n\n").endswith("dropped 0\n")
    assert run("drop", checkpoint, 1, answer="y\n").endswith("dropped 1\n")
    assert [entry.id for entry in letters.read_page()] == ["2", "3"]
    letters.add("brand", [letter("1", 5, "{}")])
    assert run_json("drop", checkpoint, "--all", "--name", "product", "--yes") == {"dropped": 2}
    assert [entry.index for entry in letters.read_page()] == ["brand"]


@pytest.mark.parametrize("command", ["list", "show", "retry", "drop"])
def test_help_has_examples(command: str) -> None:
    assert f"penstock dlq {command} /var/lib" in run(command, "--help")


def test_with_several_drivers_the_letters_are_those_of_the_newest_term(checkpoint: Path, letters: DeadLetters) -> None:
    term = begin_term(checkpoint, "product", 3)
    with DeadLetters.open(dead_letters_path(term)) as newest:
        newest.add("product", [letter("9", 6, None)])
        assert [entry["id"] for entry in run_json("list", checkpoint)["letters"]] == ["1", "2", "3", "9"]
        run("drop", checkpoint, "--all", "--yes")
        assert not newest.count()
    assert letters.count() == 3
