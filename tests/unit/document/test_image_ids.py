"""Ids and routings of row images, written by column, beside those that are written one by one."""

import base64
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.document.changes import read_image_key
from penstock.document.document_id import document_id, routing_text
from penstock.document.image_ids import read_key, write_ids, write_routings
from penstock.document.sql_text import value_from_json
from penstock.model import Column, TableName, WireType
from penstock.render.json_lines import JSON_ESCAPES
from penstock.render.json_members import find_json_members
from penstock.render.text import escape_texts
from tests.twins.strategy import examples

TABLE = TableName("shop", "keys")
PLAIN = st.text(max_size=8)
SPECIAL = st.sampled_from(["", "%", "%25", "a:b", "%3A", "\\", "\n", '"', "Ü" * 300, "x" * 512, "x" * 513, "null", "5"])
KINDS: dict[str, tuple[Column, st.SearchStrategy[Any]]] = {
    "int": (Column("int", WireType.LONGLONG), st.integers(-(2**63), 2**63 - 1)),
    "unsigned": (Column("unsigned", WireType.LONGLONG, unsigned=True), st.integers(0, 2**64 - 1)),
    "text": (Column("text", WireType.VARCHAR, charset="utf8mb4"), st.one_of(PLAIN, SPECIAL)),
    "decimal": (
        Column("decimal", WireType.NEWDECIMAL, precision=10, scale=2),
        st.integers(-(10**9), 10**9).map(lambda cents: format(Decimal(cents) / 100, ".2f")),
    ),
    "bytes": (
        Column("bytes", WireType.VARCHAR, charset="binary"),
        st.binary(max_size=6).map(lambda raw: base64.b64encode(raw).decode()),
    ),
    "uuid": (
        Column("uuid", WireType.STRING, size=16, charset="binary", declared="uuid"),
        st.binary(min_size=16, max_size=16).map(lambda raw: base64.b64encode(raw).decode()),
    ),
    "date": (Column("date", WireType.DATE), st.dates().map(str)),
    "datetime": (Column("datetime", WireType.DATETIME2), st.datetimes().map(lambda moment: moment.isoformat())),
    "timestamp": (
        Column("timestamp", WireType.TIMESTAMP2),
        st.datetimes().map(lambda moment: f"{moment.isoformat()}Z"),
    ),
    "time": (Column("time", WireType.TIME2), st.sampled_from(["-838:59:59", "00:00:00.000", "12:34:56"])),
}


def write_image(row: dict[str, Any]) -> str:
    """Return a row image as the stream writes it."""
    names, values = list(row), list(row.values())
    texts = escape_texts(pa.array([value if isinstance(value, str) else "" for value in values]), JSON_ESCAPES)
    written = [
        json.dumps(value) if not isinstance(value, str) else f'"{text}"'
        for value, text in zip(values, texts.to_pylist(), strict=True)
    ]
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in zip(names, written, strict=True)) + "}"


@given(st.data())
@examples(300)
def test_ids_are_those_of_the_keys(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=3, unique=True))
    rows = data.draw(st.lists(st.fixed_dictionaries({name: KINDS[name][1] for name in names}), max_size=6))
    columns = tuple(KINDS[name][0] for name in names)
    images = pa.array([write_image(row) for row in rows], pa.large_string())
    members = find_json_members(images, np.arange(len(rows)), names)
    keys = [read_image_key(TABLE, row, columns) for row in rows]
    assert [read_key(columns, members, number) for number in range(len(rows))] == keys
    assert write_ids(columns, members).to_pylist() == [document_id(key) for key in keys if key is not None]


@given(st.data())
@examples(200)
def test_routings_are_the_texts_of_values(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(list(KINDS)))
    column, values = KINDS[name]
    rows = data.draw(st.lists(st.one_of(st.none(), values), max_size=6))
    images = pa.array([write_image({name: value}) for value in rows], pa.large_string())
    (member,) = find_json_members(images, np.arange(len(rows)), [name])
    expected = [value_from_json(column, value) for value in rows]
    assert write_routings(column, member).to_pylist() == [routing_text(value) for value in expected]
