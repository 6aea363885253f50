"""Which GTIDs of a log are in a set."""

import pyarrow as pa

from penstock.binlog.events.gtid_mask import are_in
from penstock.model import GtidSet

A, B = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562"


def test_a_gtid_of_mariadb_stands_for_all_before_it_in_its_domain() -> None:
    gtid_set = GtidSet.parse("0-1-25,1-2-30")
    gtids = pa.array(["0-1-25", "0-9-24", "0-1-26", "1-2-30", "1-2-31", "2-1-1", None])
    assert are_in(gtids, gtid_set).tolist() == [True, True, False, True, False, False, False]


def test_which_gtids_of_mysql_are_in_a_set() -> None:
    gtid_set = GtidSet.parse(f"{A}:2-3:5,{A}:blue:1")
    gtids = pa.array([f"{A}:1", f"{A}:2", f"{A}:5", f"{A}:blue:1", f"{A}:blue:2", f"{B}:2", None])
    assert are_in(gtids, gtid_set).tolist() == [False, True, True, True, False, False, False]
    assert are_in(pa.array(["0-1-2"]), gtid_set).tolist() == [False]
