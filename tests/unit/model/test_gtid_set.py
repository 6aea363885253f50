"""GTID sets as people and servers write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigurationError
from penstock.model import GtidSet
from tests.twins.strategy import examples

A, B = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562"


def test_ranges_of_mysql_are_merged_and_know_their_tags() -> None:
    gtids = GtidSet.parse(f"{A}:1-5:6-7:9,\n {B.upper()}:3:Blue:1-2")
    assert gtids.ranges == {A: ((1, 7), (9, 9)), B: ((3, 3),), f"{B}:blue": ((1, 2),)}


@pytest.mark.parametrize(
    ("text", "is_single"),
    [
        (f"{A}:7", True),
        (f"{A}:7-7", True),
        (f"{A}:7-8", False),
        (f"{A}:blue:7", True),
        (f"{A}:7,{B}:7", False),
        ("0-1-7", True),
        ("0-1-7,1-1-1", False),
    ],
)
def test_one_transaction_or_a_set_of_them(text: str, is_single: bool) -> None:
    assert GtidSet.parse(text).is_single is is_single


def test_a_set_includes_another() -> None:
    assert GtidSet.parse(f"{A}:1-10").includes(GtidSet.parse(f"{A}:1-5:7-10"))
    assert not GtidSet.parse(f"{A}:1-10").includes(GtidSet.parse(f"{A}:9-11"))
    assert not GtidSet.parse(f"{A}:1-10").includes(GtidSet.parse(f"{B}:1"))
    assert GtidSet.parse("0-1-10").includes(GtidSet.parse("0-2-9"))
    assert GtidSet.parse("").includes(GtidSet.parse(""))


@pytest.mark.parametrize("text", ["x", f"{A}", f"{A}:", "0-1", f"{A}:1-2-3", "0-1-2;1-2-3"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ConfigurationError, match="not a GTID"):
        GtidSet.parse(text)


_NUMBERS = st.dictionaries(st.sampled_from((A, B, f"{A}:red")), st.sets(st.integers(1, 30)), max_size=3)


def _set_of(numbers: dict[str, set[int]]) -> GtidSet:
    gtids = GtidSet.parse("")
    for source, numbers_of_source in numbers.items():
        for number in numbers_of_source:
            gtids = gtids.with_range(source, (number, number))
    return gtids


def _numbers(gtids: GtidSet) -> dict[str, set[int]]:
    by_source = {
        source: {n for low, high in ranges for n in range(low, high + 1)} for source, ranges in gtids.ranges.items()
    }
    return {source: numbers for source, numbers in by_source.items() if numbers}


@examples(200)
@given(_NUMBERS, _NUMBERS)
def test_sets_are_sets(first: dict[str, set[int]], other: dict[str, set[int]]) -> None:
    a, b = _set_of(first), _set_of(other)
    assert _numbers(GtidSet.parse(a.text)) == {source: numbers for source, numbers in first.items() if numbers}
    assert GtidSet.parse(a.text) == GtidSet.parse(GtidSet.parse(a.text).text)
    assert a.includes(b) == all(numbers <= first.get(source, set()) for source, numbers in other.items())
    left = {source: numbers - other.get(source, set()) for source, numbers in first.items()}
    assert _numbers(a.minus(b)) == {source: numbers for source, numbers in left.items() if numbers}


def test_in_a_domain_of_mariadb_the_last_one_counts() -> None:
    gtids = GtidSet.parse("0-1-25, 1-2-30")
    assert gtids.with_range("0", (26, 26), 7).text == "0-7-26,1-2-30"
    assert GtidSet.parse("0-2-9,0-1-25,0-3-7").text == "0-1-25"
