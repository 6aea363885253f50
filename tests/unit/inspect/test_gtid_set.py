"""GTID sets as people and servers write them."""

import pyarrow as pa
import pytest

from penstock.errors import ConfigurationError
from penstock.inspect.gtid_set import GtidSet

A, B = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562"


def test_ranges_of_mysql_are_merged_and_know_their_tags() -> None:
    found = GtidSet.parse(f"{A}:1-5:6-7:9,\n {B.upper()}:3:Blue:1-2")
    assert found.ranges == {A: [(1, 7), (9, 9)], B: [(3, 3)], f"{B}:blue": [(1, 2)]}


def test_a_gtid_of_mariadb_stands_for_all_before_it_in_its_domain() -> None:
    found = GtidSet.parse("0-1-25,1-2-30")
    gtids = pa.array(["0-1-25", "0-9-24", "0-1-26", "1-2-30", "1-2-31", "2-1-1", None])
    assert found.contains(gtids).tolist() == [True, True, False, True, False, False, False]


def test_which_gtids_of_mysql_are_in_a_set() -> None:
    found = GtidSet.parse(f"{A}:2-3:5,{A}:blue:1")
    gtids = pa.array([f"{A}:1", f"{A}:2", f"{A}:5", f"{A}:blue:1", f"{A}:blue:2", f"{B}:2", None])
    assert found.contains(gtids).tolist() == [False, True, True, True, False, False, False]
    assert found.contains(pa.array(["0-1-2"])).tolist() == [False]


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
