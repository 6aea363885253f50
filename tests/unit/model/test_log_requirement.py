"""What a server must have executed for a batch of changes, as one short text."""

import pickle

import pytest

from penstock.errors import ConfigurationError
from penstock.model import GtidSet, LogRequirement, Position

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
END = Position("binlog.000007", 4711)


def test_gtids_of_mysql_become_ranges() -> None:
    needed = LogRequirement.of_changes([f"{UUID}:{number}" for number in (5, 3, 4, 9)], END, "1-1700000000")
    assert needed == LogRequirement(f"{UUID}:3-5:9")
    assert pickle.loads(pickle.dumps(needed)) == needed  # noqa: S301 - ours; it goes to executors


def test_of_mariadb_the_last_of_each_domain_and_server_counts() -> None:
    """Two servers may have written to one domain: each has its own numbers there."""
    needed = LogRequirement.of_changes(["0-1-17", "0-2-16", "0-1-15", "3-1-2"], END, "1-1700000000")
    assert needed.gtids == "0-1-17,0-2-16,3-1-2"


def test_changes_without_gtids_need_the_position_and_the_server_of_their_log() -> None:
    needed = LogRequirement.of_changes([None, f"{UUID}:3"], END, "12-1700000000")
    assert needed == LogRequirement(f"{UUID}:3", END, 12)
    assert LogRequirement.of_changes([], END, "12-1700000000") == LogRequirement()
    assert LogRequirement.of_changes([None], None) == LogRequirement()
    assert LogRequirement.of_changes([None], END).server_id is None
    with pytest.raises(ConfigurationError, match="not the identity"):
        LogRequirement.of_changes([None], END, "somebody")


def test_a_position_is_reached_by_its_gtids_if_it_has_any() -> None:
    assert LogRequirement.of_position(END, "12-1") == LogRequirement("", END, 12)
    with_gtids = Position("binlog.000007", 4711, gtids=GtidSet.parse("0-1-17"))
    assert LogRequirement.of_position(with_gtids, "12-1") == LogRequirement("0-1-17")
