"""The range of a micro-batch, from the checkpoint of its query."""

import json
from pathlib import Path

import pytest

from penstock.model import Position
from penstock.spark.batch_range import read_batch_range, read_offset

METADATA = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1, "conf": {}})


def write_offset(checkpoint: Path, number: int, *lines: str) -> None:
    (checkpoint / "offsets").mkdir(exist_ok=True)
    (checkpoint / "offsets" / str(number)).write_text("\n".join(lines), encoding="utf-8")


def offset(at: int) -> str:
    return json.dumps({**Position("binlog.000003", at).to_json(), "log": "1-2", "filter": "a\\.b"})


def test_a_batch_begins_where_the_one_before_it_ends(tmp_path: Path) -> None:
    for number, at in enumerate((4, 100, 250)):
        write_offset(tmp_path, number, "v1", METADATA, offset(at))
    assert read_batch_range(tmp_path, 2) == (Position("binlog.000003", 100), Position("binlog.000003", 250))
    assert read_batch_range(tmp_path, 1) == (Position("binlog.000003", 4), Position("binlog.000003", 100))
    assert (read_offset(tmp_path, 2) or {})["log"] == "1-2"


def test_the_first_batch_and_one_that_was_not_planned_have_no_known_range(tmp_path: Path) -> None:
    assert read_batch_range(tmp_path, 0) is None
    write_offset(tmp_path, 0, "v1", METADATA, offset(4))
    assert read_batch_range(tmp_path, 0) is None
    assert read_batch_range(tmp_path, 1) is None


@pytest.mark.parametrize(
    "lines",
    [
        ("v2", METADATA, offset(9)),
        ("v1", METADATA, offset(9), offset(9)),
        ("v1", METADATA),
        ("v1", METADATA, "-"),
        ("v1", METADATA, "7"),
        ("v1", METADATA, "{"),
        (),
    ],
    ids=["another format", "two sources", "no source", "a source without an offset", "no object", "half", "empty"],
)
def test_what_is_written_otherwise_is_not_guessed(tmp_path: Path, lines: tuple[str, ...]) -> None:
    write_offset(tmp_path, 0, "v1", METADATA, offset(4))
    write_offset(tmp_path, 1, *lines)
    assert read_batch_range(tmp_path, 1) is None
    assert read_offset(tmp_path, 1) is None
