"""What goes into one file is one table, and `--without` can leave out a column of one table."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.binlog import native
from penstock.binlog.kernel import I64, Kernel
from penstock.errors import ConfigurationError
from tests.support.shop_log import NOTE, PRODUCT, binlog, shop_log, shown, written
from tests.twins.log import LogWriter
from tests.twins.row import INSERT


@pytest.fixture
def late(tmp_path: Path) -> Path:
    """A log whose second table comes after many blocks of the first."""
    log = LogWriter().open()
    for number in range(60):
        log.begin()
        log.map(7, PRODUCT)
        log.rows(INSERT, 7, PRODUCT, [[number * 400 + i, "n" * 190, None] for i in range(400)])
        log.commit()
    log.begin()
    log.map(8, NOTE)
    log.rows(INSERT, 8, NOTE, [["a", None]])
    log.commit()
    return written(log, tmp_path)


@pytest.mark.parametrize("kind", ["csv", "arrow", "parquet"])
def test_several_tables_are_refused_before_anything_is_written(late: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"rows.{kind}"
    wanted = f"{kind} holds one table, and there are rows of shop.product, shop.note: choose with --table"
    with pytest.raises(ConfigurationError, match=wanted):
        binlog(late, "--output", kind, "--to", path)
    assert not path.exists()
    assert shown(late, "--output", "csv", "--table", "shop.note").count("\n") == 2
    assert shown(late, "--output", "csv", "--limit", "5").count("\n") == 6, "the other table is not reached"
    shown(late, "--output", kind, "--to", tmp_path / "folder")
    assert len(list((tmp_path / "folder").iterdir())) == 2


def test_a_log_that_is_cut_off_still_gives_what_it_has(late: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.000002"
    cut.write_bytes(late.read_bytes()[: late.stat().st_size // 2])
    assert binlog(cut, "--output", "csv").stdout.count("\n") > 1000


def test_a_column_of_one_table_is_left_out(tmp_path: Path) -> None:
    log = written(shop_log(), tmp_path)
    changes = [json.loads(line) for line in shown(log, "--output", "json", "--without", "shop.note.raw").splitlines()]
    rows = [change["after"] for change in changes if change["type"] == "insert"]
    assert [list(row) for row in rows] == [["id", "name", "price"]] * 2 + [["what"], ["id", "name", "price"]]
    changes = [json.loads(line) for line in shown(log, "--output", "json", "--without", "shop.note.name").splitlines()]
    assert next(list(change["after"]) for change in changes if change["type"] == "insert") == ["id", "name", "price"]
    assert "`raw`" not in shown(log, "--output", "sql", "--without", "shop.note.raw,price")
    text = shown(log, "--output", "csv", "--table", "shop.product", "--without", "shop.product.price")
    assert "price" not in text.splitlines()[0]


def test_a_run_that_compiles_kernels_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def cache_files(kernel: Kernel) -> Iterator[Path]:
        yield tmp_path / kernel.function.__name__

    monkeypatch.setattr(native, "_cache_files", cache_files)
    native._announce_compilation.cache_clear()

    def one_more(value: int) -> int:
        return value + 1

    def two_more(value: int) -> int:
        return value + 2

    with caplog.at_level(logging.WARNING):
        made = [Kernel(function, I64(I64), is_brief=False) for function in (one_more, two_more)]
        assert [kernel(1) for kernel in made] == [2, 3]
        assert caplog.text.count("compiling kernels for this machine") == 1
        native._announce_compilation.cache_clear()
        assert Kernel(one_more, I64(I64), is_brief=False)(1) == 2
    assert caplog.text.count("compiling kernels for this machine") == 1, "it is on disk by now"


def test_a_column_that_no_table_has_is_warned_about(tmp_path: Path) -> None:
    log = written(shop_log(), tmp_path)
    result = binlog(log, "--without", "shop.note.raw,shop.note.wrong,price")
    assert result.exit_code == 0
    assert result.stderr == "penstock: warning: --without shop.note.wrong: no table that was shown has such a column\n"
    assert binlog(log, "--without", "price", "--columns", "id,name,what").stderr == ""
