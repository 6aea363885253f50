"""Bytes of values as real servers log them → the texts that are written down for them, without a server.

`make_vectors` makes them again.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.binlog.values.column import DecodeOptions
from penstock.binlog.values.decode import Fields, decode_column
from penstock.model import Column, WireType
from penstock.render import text
from penstock.render.csv_lines import CsvValueWriter

VECTORS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("vectors.json").read_text(encoding="utf-8"))
_REALS = {WireType.FLOAT: np.float32, WireType.DOUBLE: np.float64}


def texts_of(column: Column, values: list[bytes]) -> list[str]:
    data = np.frombuffer(b"".join(values), np.uint8)
    lengths = np.array([len(value) for value in values], np.int32)
    offsets = (np.cumsum(lengths) - lengths).astype(np.int32)
    fields = Fields(data, offsets, lengths, 0, np.empty(0, np.uint8))
    array = decode_column(column, DecodeOptions(dates="text"), fields)
    if column.type is WireType.JSON:
        return array.to_pylist()
    written = CsvValueWriter().write_column(column, array)
    return text.write_plain(written.texts).to_pylist()


def test_every_form_has_vectors() -> None:
    assert len(VECTORS) > 50
    assert {WireType(vector["column"]["type"]) for vector in VECTORS} >= {
        WireType.NEWDECIMAL, WireType.FLOAT, WireType.DOUBLE, WireType.DATE, WireType.YEAR, WireType.TIME2,
        WireType.DATETIME2, WireType.TIMESTAMP2, WireType.TIME, WireType.DATETIME, WireType.TIMESTAMP, WireType.JSON,
    }  # fmt: skip


@pytest.mark.parametrize(
    "vector", VECTORS, ids=lambda vector: f"{vector['form']}-{WireType(vector['column']['type']).name}"
)
def test_bytes_become_their_texts(vector: dict[str, Any]) -> None:
    column = Column(**{**vector["column"], "type": WireType(vector["column"]["type"])})
    texts = texts_of(column, [bytes.fromhex(raw) for raw, _ in vector["values"]])
    expected = [shown for _, shown in vector["values"]]
    real = _REALS.get(column.type)
    if real is not None:
        assert [real(number).tobytes() for number in texts] == [real(float(number)).tobytes() for number in expected]
    else:
        assert texts == expected
