"""Times, positions and ids that an event can hold and nothing else can."""

import json
import struct
from pathlib import Path

import pytest

from penstock.errors import BinlogError
from tests.support.shop_log import PRODUCT, binlog, shown, written
from tests.twins import event as ev
from tests.twins.log import SOURCE, LogWriter
from tests.twins.row import INSERT, UPDATE

YEAR_10000_US = 253_402_300_800_000_000


def _number(value: int) -> bytes:
    return b"\xff" + (value % (1 << 64)).to_bytes(8, "little")


def log_with(commit_us: int) -> LogWriter:
    """A transaction of today, and one with a tag that claims to be of another time."""
    log = LogWriter(is_mariadb=False).open()
    log.begin()
    log.map(7, PRODUCT)
    log.rows(INSERT, 7, PRODUCT, [[1, "x", None]])
    log.commit()
    uuid = b"".join(_number(byte) for byte in SOURCE.bytes)
    fields = (
        b"\0\0",
        b"\x02" + uuid,
        b"\x04" + _number(4),
        b"\x06" + _number(3) + b"tag",
        b"\x0c" + _number(commit_us),
    )
    log.add(42, bytes(3) + b"".join(fields))
    log.add(ev.QUERY, ev.query(b"BEGIN"))
    log.map(7, PRODUCT)
    log.rows(UPDATE, 7, PRODUCT, [[1, "x", None], [1, "y", None]])
    log.commit()
    return log


@pytest.mark.parametrize("commit_us", [YEAR_10000_US, 1 << 62])
def test_a_time_that_no_calendar_has_is_unknown(tmp_path: Path, commit_us: int) -> None:
    path = written(log_with(commit_us), tmp_path)
    known, unknown = map(json.loads, shown(path).splitlines())
    assert (known["ts"], unknown["ts"]) == ("2023-11-14T22:13:20.123456Z", None)
    assert unknown["gtid"] == f"{SOURCE}:tag:2"
    lines = shown(path, "--output", "csv").splitlines()
    assert [line.split(",")[5] for line in lines[1:]] == ["2023-11-14T22:13:20.123456Z", "", ""]
    assert f"  time unknown  {unknown['gtid']}\n" in shown(path, "--output", "text")
    stats = json.loads(shown(path, "--stats", "--output", "json"))
    assert stats["first"] == stats["last"] == known["ts"]
    assert stats["transactions"] == 2
    assert sorted(transaction["ts"] or "" for transaction in stats["largest_transactions"]) == ["", known["ts"]]
    assert sum(bar["transactions"] for bar in stats["rate"]["bars"]) == 1
    assert "unknown" in shown(path, "--stats")


def test_the_last_second_of_the_calendar(tmp_path: Path) -> None:
    path = written(log_with(YEAR_10000_US - 1), tmp_path)
    assert json.loads(shown(path).splitlines()[1])["ts"] == "9999-12-31T23:59:59.999999Z"
    assert "9999-12-31 23:59:59" in shown(path, "--stats")


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_a_file_whose_number_has_no_room_in_seq(tmp_path: Path, kind: str) -> None:
    path = written(log_with(0), tmp_path, "binlog.1048576")
    with pytest.raises(BinlogError, match=r"binlog\.1048576:\d+ has no `_seq`: it counts 1048575 files"):
        binlog(path, "--output", kind)
    assert "UPDATE" in shown(path, "--output", "sql")


def test_an_xa_prepare_that_was_cut_short(tmp_path: Path) -> None:
    log = LogWriter().open()
    log.begin()
    log.map(7, PRODUCT)
    log.rows(INSERT, 7, PRODUCT, [[1, "x", None]])
    at = log.add(ev.XA_PREPARE, b"\0" + struct.pack("<III", 1, 100, 100))
    with pytest.raises(BinlogError, match=rf"binlog\.000001:{at} XA_PREPARE: .*; bytes there: 00 01 00 00 00 64 00"):
        binlog(written(log, tmp_path))
