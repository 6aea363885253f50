"""Random logs as JSON lines, beside what plain Python makes of the same rows; and all formats survive any log."""

import base64
import json
import math
import struct
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.errors import PenstockError
from penstock.model import ChangeKind, Column, WireType
from tests.support.shop_log import binlog, shown
from tests.twins.event import MAGIC
from tests.twins.log import Image, LogWriter
from tests.twins.row import ABSENT
from tests.twins.strategy import broken, examples, logs
from tests.twins.strategy import shown as seen
from tests.twins.value import ZERO

MANY = settings(examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
FEW = settings(examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
_CLOCKS = {WireType.DATETIME, WireType.DATETIME2, WireType.TIMESTAMP, WireType.TIMESTAMP2}
_INSTANTS = {WireType.TIMESTAMP, WireType.TIMESTAMP2}


def in_json(column: Column, value: Any) -> Any:  # noqa: C901, PLR0911 - a branch per kind of value
    if value is None:
        return None
    digits = column.size if column.type in {WireType.TIME2, WireType.DATETIME2, WireType.TIMESTAMP2} else 0
    fraction = "." + "0" * digits if digits else ""
    if value == ZERO and column.type is WireType.DATE:
        return ZERO
    if value == ZERO and column.type in _CLOCKS:
        return f"{ZERO}T00:00:00{fraction}{'Z' if column.type in _INSTANTS else ''}"
    value = seen(column, value)
    match value:
        case Decimal():
            return f"{value:f}"
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            text = f"{value.year:04}-{value:%m-%dT%H:%M:%S.%f}"[: 20 + digits if digits else 19]
            return text + ("Z" if column.type in _INSTANTS else "")
        case date():
            return f"{value.year:04}-{value:%m-%d}"
        case timedelta():
            micros = abs(value) // timedelta(microseconds=1)
            clock = f"{micros // 3_600_000_000:02}:{micros // 60_000_000 % 60:02}:{micros // 1_000_000 % 60:02}"
            part = f".{micros % 1_000_000:06}"[: 1 + digits] if digits else ""
            return ("-" if value < timedelta() else "") + clock + part
        case float() if not math.isfinite(value):
            return str(value)
        case list():
            return [
                str(number) if not math.isfinite(number) else struct.unpack("<f", struct.pack("<f", number))[0]
                for number in value
            ]
        case _:
            return value


def image_of(image: Image) -> dict[str, Any]:
    cells = zip(image.table.columns, image.row, strict=True)
    return {column.name: in_json(column, cell) for column, cell in cells if cell is not ABSENT}


def is_same(value: Any, expected: Any) -> bool:
    """A FLOAT is written as shortly as it can be read back."""
    if isinstance(expected, float):
        narrow = struct.unpack("<f", struct.pack("<f", value))[0] if abs(value) < 3.5e38 else math.inf
        return expected in {value, narrow}
    if isinstance(expected, list):
        return all(map(is_same, value, expected)) and len(value) == len(expected)
    if isinstance(expected, dict):
        return value.keys() == expected.keys() and all(is_same(value[key], expected[key]) for key in expected)
    return value == expected


def file_of(log: LogWriter, folder: Path) -> Path:
    path = folder / "binlog.000001"
    path.write_bytes(MAGIC + bytes(log.data))
    return path


@given(logs(files=1))
@MANY
def test_json_lines_say_what_was_written(tmp_path: Path, log: LogWriter) -> None:
    lines = [json.loads(line) for line in shown(file_of(log, tmp_path)).split("\n")[:-1]]
    changes = iter(line for line in lines if line["type"] != "ddl")
    images = iter(log.images)
    for image in images:
        change = next(changes)
        assert change["table"] == str(image.table.name)
        assert change["gtid"] == image.gtid
        match image.kind:
            case ChangeKind.INSERT:
                assert change["type"] == "insert"
                assert is_same(change["after"], image_of(image))
            case ChangeKind.DELETE:
                assert is_same(change["before"], image_of(image))
            case _:
                after = next(images)
                assert is_same(change["before"], image_of(image))
                assert is_same(change["after"], image_of(after))
    assert next(changes, None) is None


FORMATS = [("--output", name) for name in ("text", "sql", "csv", "parquet", "arrow")] + [
    ("--flashback",),
    ("--stats",),
]


@given(logs(files=1), st.sampled_from(FORMATS), st.data())
@FEW
def test_no_log_surprises_a_format(
    tmp_path: Path, log: LogWriter, options: tuple[str, ...], data: st.DataObject
) -> None:
    """Whole or broken: it is shown, or refused with an error of ours."""
    raw = MAGIC + bytes(log.data)
    path = tmp_path / "binlog.000001"
    path.write_bytes(data.draw(broken(raw, len(MAGIC))) if data.draw(st.booleans()) else raw)
    output = ["--to", tmp_path / "out"] if options[-1] in {"csv", "parquet", "arrow"} else []
    with suppress(PenstockError):
        assert binlog(path, *options, *output).exit_code == 0
    assert binlog(path, "--verify").exit_code in {0, 1}
