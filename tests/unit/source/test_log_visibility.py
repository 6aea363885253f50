"""When reads see what the log says, decided from the answers of a server that exists only as a few values."""

from collections.abc import Sequence
from typing import Any

import pytest

from penstock.errors import ConfigurationError, ProtocolError, SourceConnectionError
from penstock.model import Position
from penstock.source.snapshot_position import SnapshotPosition
from penstock.source.visibility import LogVisibility, parse_owned_gtids

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
FILE = "binlog.000002"
HEAD = [("Format_desc", 256, ""), ("Gtid_list", 299, "[0-1-5]"), ("Binlog_checkpoint", 339, "binlog.000001")]
TRANSACTION = [("Gtid", 381, "BEGIN GTID 0-1-6"), ("Write_rows_v1", 540, ""), ("Xid", 571, "COMMIT /* xid=9 */")]
OWN = [("Binlog_checkpoint", 379, FILE)]
CHECKPOINT = [("Binlog_checkpoint", 611, FILE)]


class FakeMariaDB:
    """A log of which every event is (type, end, info), and the position that its snapshots say they have."""

    def __init__(self, events: list[tuple[str, int, str]], snapshot: int, waiting: int = 0) -> None:
        self.events, self.snapshot, self.waiting = events, snapshot, waiting
        self.now = 0.0
        self.scans = 0
        self.hides_from = -1  # of an event that is too large to be shown

    def query(self, sql: str) -> Sequence[tuple[Any, ...]]:
        if "FROM" in sql and self.hides_from >= int(sql.split("FROM ")[1].split(maxsplit=1)[0]):
            raise ProtocolError("Error when executing command SHOW BINLOG EVENTS: Wrong offset or I/O error")
        if "Binlog_snapshot_file" in sql:
            return [("Binlog_snapshot_file", FILE), ("Binlog_snapshot_position", str(self.snapshot))]
        if sql == "SHOW MASTER STATUS":
            return [(FILE, self.events[-1][1], "", "")]
        if "wait_sessions" in sql:
            return [("Rpl_semi_sync_master_wait_sessions", str(self.waiting))]
        if sql.startswith("SHOW BINLOG EVENTS"):
            self.scans += 1
            first, limit = int(sql.split("FROM ")[1].split(maxsplit=1)[0]), int(sql.split("LIMIT ")[1])
            starts = [4, *(end for _, end, _ in self.events)]
            rows = [(FILE, begin, *event) for begin, event in zip(starts, self.events, strict=False)]
            return [(file, at, kind, 1, end, info) for file, at, kind, end, info in rows if at >= first][:limit]
        return []

    def position(self) -> SnapshotPosition:
        return SnapshotPosition(self.query, clock=lambda: self.now)


@pytest.mark.parametrize(
    ("events", "snapshot", "end", "is_reached"),
    [
        pytest.param([*HEAD, *TRANSACTION], 571, 571, True, id="the last transaction is committed"),
        pytest.param([*HEAD, *TRANSACTION], 339, 571, False, id="it is in the log and not committed"),
        pytest.param([*HEAD], 339, 339, False, id="the head of a file: those before it may have commits to come"),
        pytest.param([*HEAD, *OWN], 379, 379, True, id="its own checkpoint: all before it is committed"),
        pytest.param([*HEAD, *OWN], 379, 339, True, id="or a position before that one"),
        pytest.param([*HEAD, *TRANSACTION], 9000, 571, False, id="an offset of another file"),
        pytest.param([*HEAD, *TRANSACTION, *CHECKPOINT], 611, 611, False, id="a checkpoint counts as committed"),
        pytest.param([*HEAD, *TRANSACTION, *CHECKPOINT], 611, 571, False, id="of a position before it, too"),
        pytest.param([*HEAD, *TRANSACTION, *CHECKPOINT], 571, 611, True, id="only a checkpoint follows the commit"),
        pytest.param([*HEAD, *TRANSACTION, *CHECKPOINT, ("Xid", 800, "")], 800, 611, True, id="a commit after it"),
    ],
)
def test_a_snapshot_of_mariadb_has_reached(
    events: list[tuple[str, int, str]], snapshot: int, end: int, *, is_reached: bool
) -> None:
    server = FakeMariaDB(events, snapshot)
    assert server.position().has_reached(Position(FILE, end)) == is_reached


def test_what_lies_before_a_checkpoint_is_committed_after_a_second_unless_a_replica_is_waited_for() -> None:
    server = FakeMariaDB([*HEAD, *TRANSACTION, *CHECKPOINT], 611, waiting=1)
    position, end = server.position(), Position(FILE, 611)
    assert not position.has_reached(end)
    server.now = 5.0
    assert not position.has_reached(end), "a session waits for a semi-sync replica"
    server.waiting = 0
    assert position.has_reached(end)


def test_a_doubt_begins_again_with_each_end_of_the_log() -> None:
    server = FakeMariaDB([*HEAD, *TRANSACTION], 9000)  # an offset of another file
    position = server.position()
    assert not position.has_reached(Position(FILE, 339))
    server.now = 5.0
    assert position.has_reached(Position(FILE, 339))
    assert not position.has_reached(Position(FILE, 571)), "a transaction that came since then may not be committed"


def test_a_position_behind_an_event_that_is_too_large_to_be_shown_is_doubtful_and_the_next_one_is_not() -> None:
    server = FakeMariaDB([*HEAD, *TRANSACTION, ("Xid", 900, ""), ("Xid", 1000, "")], 571)
    server.hides_from = 540
    position, end = server.position(), Position(FILE, 571)
    assert not position.has_reached(end)
    server.now = 5.0
    assert position.has_reached(end)
    server.snapshot = 900
    assert position.has_reached(Position(FILE, 900))


def test_a_file_is_searched_for_its_checkpoints_once() -> None:
    server = FakeMariaDB([*HEAD, *CHECKPOINT, *(("Xid", 1000 + i, "") for i in range(5000))], 5999)
    position = server.position()
    assert all(position.has_reached(Position(FILE, 5999)) for _ in range(10))
    assert server.scans == 1


class FakeMySQL:
    """Answers one after the other: what is being committed at each look."""

    def __init__(self, gtid_mode: str, *looks: Any) -> None:
        self.gtid_mode, self.looks = gtid_mode, list(looks)
        self.now = 0.0

    def query(self, sql: str) -> Sequence[tuple[Any, ...]]:
        if "VERSION" in sql:
            return [("8.0.12",)]
        if "gtid_owned" in sql:
            return [(self.gtid_mode, self._next() if self.gtid_mode == "ON" else "")]
        return [(1, 1, "executing", 1), *self._next()]

    def _next(self) -> Any:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def wait(self, timeout_s: float = 10.0) -> None:
        LogVisibility(self.query, clock=lambda: self.now, sleep=self.sleep).wait(timeout_s)


@pytest.mark.parametrize(
    ("server", "left"),
    [
        pytest.param(FakeMySQL("ON", ""), 1, id="nothing is being committed"),
        pytest.param(FakeMySQL("ON", f"{UUID}:4#7", f"{UUID}:4#7", f"{UUID}:5#8"), 1, id="others may follow"),
        pytest.param(FakeMySQL("OFF", [(7, 2, "starting", 0)], [(7, 3, "starting", 0)]), 1, id="the statement ended"),
        pytest.param(FakeMySQL("OFF", [(7, 2, "starting", 0)], [(7, 2, "updating", 0)]), 1, id="it is in another one"),
        pytest.param(FakeMySQL("OFF", [(7, 2, "updating", 0), (8, 1, "User sleep", 0)]), 1, id="none is in its commit"),
    ],
)
def test_mysql_is_waited_for_as_long_as_what_was_being_committed(server: FakeMySQL, left: int) -> None:
    server.wait()
    assert len(server.looks) == left


@pytest.mark.parametrize("server", [FakeMySQL("ON", f"{UUID}:4#7"), FakeMySQL("OFF", [(7, 2, "query end", 0)])])
def test_a_commit_that_does_not_end_is_an_error_after_the_timeout(server: FakeMySQL) -> None:
    with pytest.raises(SourceConnectionError, match="still not committed"):
        server.wait()
    assert server.now == pytest.approx(10.0, abs=0.2)


def test_a_server_that_does_not_show_our_own_statement_does_not_show_those_of_others() -> None:
    server = FakeMySQL("OFF", [])
    with pytest.raises(ConfigurationError, match="performance_schema must show running statements"):
        LogVisibility(lambda sql: [("9.0.1",)] if "VERSION" in sql else [("OFF", "")] if "gtid" in sql else []).wait(1)
    server.wait()


def test_owned_gtids_are_told_apart_by_server_tag_number_and_owner() -> None:
    assert parse_owned_gtids("") == frozenset()
    assert parse_owned_gtids(f"{UUID}:4#7:5#8,\n{UUID}:tag:4#7") == {
        (UUID, "", "4#7"),
        (UUID, "", "5#8"),
        (UUID, "tag", "4#7"),
    }
