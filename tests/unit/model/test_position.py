"""Positions: order by file number and offset, the texts people type, the JSON that Spark keeps."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigurationError
from penstock.model import Position
from penstock.model.position import file_number
from tests.twins.strategy import examples

_NAMES = st.text("abc-._:/", min_size=1, max_size=8)
POSITIONS = st.builds(
    lambda name, number, offset: Position(f"{name}.{number:06}", offset),
    _NAMES,
    st.one_of(st.sampled_from((1, 999_999, 1_000_000)), st.integers(0, 2**20)),
    st.integers(0, 2**63 - 1),
)


@examples(200)
@given(POSITIONS, POSITIONS)
def test_order_is_that_of_file_number_and_offset(a: Position, b: Position) -> None:
    key_a, key_b = (int(a.file.rpartition(".")[2]), a.offset), (int(b.file.rpartition(".")[2]), b.offset)
    assert (a < b, a <= b, a == b, a >= b, a > b) == (
        key_a < key_b,
        key_a <= key_b,
        key_a == key_b,
        key_a >= key_b,
        key_a > key_b,
    )
    if a == b:
        assert hash(a) == hash(b)


def test_file_numbers_are_numbers() -> None:
    assert Position("binlog.999999", 900) < Position("binlog.1000000", 4)
    assert Position("binlog.000007", 4) == Position("binlog.7", 4, timestamp=5)


def test_another_log_comes_after_the_one_before() -> None:
    assert Position("binlog.000009", 900, epoch=1) < Position("binlog.000001", 4, epoch=2)
    assert Position("binlog.000001", 4) != Position("binlog.000001", 4, epoch=1)
    assert str(Position("binlog.000001", 4, epoch=1)) == "binlog.000001:4 (epoch 1)"


@examples(100)
@given(POSITIONS)
def test_text_and_json_come_back(position: Position) -> None:
    for again in (Position.parse(str(position)), Position.from_json(json.loads(json.dumps(position.to_json())))):
        assert (again.file, again.offset) == (position.file, position.offset)
    assert list(position.to_json()) == ["epoch", "file", "offset"]


@examples(200)
@given(st.one_of(st.text(max_size=12), st.text("binlog.0:7²٣-", max_size=14)))
def test_any_text_is_a_position_or_refused_in_words(text: str) -> None:
    try:
        position = Position.parse(text)
    except ConfigurationError:
        return
    assert position.file_number >= 0
    assert position.offset >= 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "binlog.000007",
        "binlog.000007:",
        "binlog:4",
        "binlog.:4",
        ":4",
        "binlog.7:-4",
        "binlog.7:²",
        "binlog.²:4",
    ],
)
def test_what_is_no_position_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"binlog\.000007"):
        Position.parse(text)


def test_not_equal_to_other_things() -> None:
    assert Position("binlog.1", 4) != "binlog.1:4"


@pytest.mark.parametrize(("file", "number"), [("binlog.000001", 1), ("a.b.c.12", 12), ("mysql-bin.1000000", 1_000_000)])
def test_file_number(file: str, number: int) -> None:
    assert file_number(file) == number
