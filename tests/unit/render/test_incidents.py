"""An INCIDENT of the server is in every output, in a warning and in the exit code."""

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.shop_log import PRODUCT, binlog, shown, written
from tests.twins.log import LogWriter
from tests.twins.row import INSERT

INCIDENT = 26
MESSAGE = b"error writing to the\nbinary log"


def product(log: LogWriter, number: int) -> None:
    log.begin()
    log.map(7, PRODUCT)
    log.rows(INSERT, 7, PRODUCT, [[number, "x", None]])
    log.commit()


@pytest.fixture(params=[True, False], ids=["mariadb", "mysql"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    log = LogWriter(is_mariadb=request.param).open()
    product(log, 1)
    log.add(INCIDENT, b"\x01\0" + bytes([len(MESSAGE)]) + MESSAGE)
    product(log, 2)
    return written(log, tmp_path)


def warned(*arguments: object) -> str:
    """What the command prints, once it has warned and said it with its exit code."""
    result = binlog(*arguments)
    assert result.exit_code == 3, result.stderr
    (line,) = result.stderr.splitlines()
    assert line.startswith("penstock: warning: binlog.000001:")
    assert "INCIDENT: the server says that it may have lost events here" in line
    assert "(error writing to the binary log)" in line
    return result.stdout


@pytest.mark.parametrize("choice", [[], ["--table", "shop.product"], ["--table", "shop.product", "--statements"]])
def test_lines_have_it_where_it_is(log: Path, choice: list[str]) -> None:
    changes = [json.loads(line) for line in warned(log, "--output", "json", *choice).splitlines()]
    assert [change["type"] for change in changes] == ["insert", "incident", "insert"]
    assert changes[1]["message"] == MESSAGE.decode()
    assert (changes[1]["file"], changes[0]["pos"] < changes[1]["pos"] < changes[2]["pos"]) == ("binlog.000001", True)
    lines = warned(log, "--output", "text", *choice).splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ")] == ["INSERT", "INCIDENT:", "INSERT"]


def test_sql_and_its_way_back_have_it_as_a_comment(log: Path) -> None:
    for mode in ("--output=sql", "--flashback"):
        lines = [line for line in warned(log, mode).splitlines() if "INCIDENT" in line or "`shop`" in line]
        assert [line.split()[0] for line in lines][1] == "--", lines
        assert len(lines) == 3
        assert lines[1].startswith("-- binlog.000001:")


def test_tables_and_counts_say_it_beside(log: Path, tmp_path: Path) -> None:
    assert len(list(csv.reader(io.StringIO(warned(log, "--output", "csv"))))) == 3
    for kind in ("arrow", "parquet"):
        path = tmp_path / f"product.{kind}"
        warned(log, "--output", kind, "--to", path)
        rows = pq.read_table(path) if kind == "parquet" else pa.ipc.open_file(path).read_all()
        assert rows.num_rows == 2
    assert "INCIDENTS: 1, where events may be lost" in warned(log, "--stats")
    assert json.loads(warned(log, "--stats", "--output", "json"))["incidents"] == 1


def test_what_is_not_shown_is_no_warning(log: Path) -> None:
    lines = [json.loads(line) for line in warned(log, "--output", "json").splitlines()]
    assert len(shown(log, "--output", "json", "--since", f"binlog.000001:{lines[2]['pos']}").splitlines()) == 1
    assert len(shown(log, "--output", "json", "--limit", "1").splitlines()) == 1


def test_a_verified_file_is_whole_and_has_it(log: Path) -> None:
    (line,) = warned(log, "--verify").splitlines()
    assert line.endswith("whole, checksums match")
    cut = log.with_name("binlog.000002")
    cut.write_bytes(log.read_bytes()[:-3])
    assert binlog("--verify", cut).exit_code == 1
