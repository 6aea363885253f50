"""The text of a log is the same however it is cut into blocks, which two threads render at the same time."""

import json
import threading
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.binlog.events import file_log
from penstock.cli import app, binlog_lines
from penstock.render.page import compose_page
from tests.support.shop_log import PRODUCT, shown, written
from tests.twins.log import LogWriter
from tests.twins.row import INSERT

SEEDS = sorted((Path(__file__).parents[2] / "campaign" / "seeds").glob("*.binlog"))
FORMS = (["--format", "json", "--statements"], ["--format", "sql"], ["--format", "text"], ["--flashback"])


def text_and_error(*arguments: object) -> tuple[str, str]:
    result = CliRunner().invoke(app, ["binlog", *map(str, arguments)])
    return result.stdout, str(result.exception or "")


def products(transactions: int) -> LogWriter:
    log = LogWriter().open()
    for number in range(transactions):
        log.begin()
        log.map(7, PRODUCT)
        log.rows(INSERT, 7, PRODUCT, [[number, "kettle", Decimal("35.00")]])
        log.commit()
    return log


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
@pytest.mark.parametrize("seed", SEEDS, ids=lambda path: path.stem)
def test_the_text_does_not_depend_on_where_blocks_end(
    seed: Path, form: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = text_and_error(seed, *form)
    monkeypatch.setattr(file_log, "_BLOCK_BYTES", 700)
    assert text_and_error(seed, *form) == whole


def test_two_blocks_are_rendered_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_log, "_BLOCK_BYTES", 1000)
    both, calls = threading.Barrier(2, timeout=60), count()

    def compose_with_another(*args: Any) -> Any:
        if next(calls) < 2:
            both.wait()  # until another thread is here too
        return compose_page(*args)

    monkeypatch.setattr(binlog_lines, "compose_page", compose_with_another)
    lines = shown(written(products(200), tmp_path), "--format", "json").splitlines()
    assert [json.loads(line)["key"]["id"] for line in lines] == list(range(200))


@pytest.mark.parametrize("form", FORMS[:3], ids=" ".join)
def test_an_error_comes_after_the_text_of_all_blocks_before_it(
    tmp_path: Path, form: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(products(200), tmp_path)
    whole = shown(path, *form)
    raw = bytearray(path.read_bytes())
    raw[len(raw) * 3 // 4] ^= 1  # its checksum says so
    path.write_bytes(raw)
    monkeypatch.setattr(file_log, "_BLOCK_BYTES", 1000)
    text, error = text_and_error(path, *form)
    assert "binlog.000001:" in error
    assert whole.startswith(text)
    assert len(text) > len(whole) // 2


@pytest.mark.parametrize("limit", [1, 33, 199])
def test_a_limit_holds_whatever_is_rendered_ahead(tmp_path: Path, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(products(200), tmp_path)
    whole = shown(path, "--format", "json").splitlines()
    monkeypatch.setattr(file_log, "_BLOCK_BYTES", 1000)
    assert shown(path, "--format", "json", "--limit", limit).splitlines() == whole[:limit]
