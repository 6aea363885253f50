"""Which log a server has, told by its uuid, the beginnings of its files, and GTIDs."""

from dataclasses import replace

import pytest

from penstock.capture.log_identity import LogIdentity, LogMatch
from penstock.meta import MemorySourceRecords, SourceRecord
from penstock.model import FileIdentity, GtidSet, Position
from penstock.source import LogInventory

ONE = "b4e7a3f0-0000-11f1-8000-000000000001"
TWO = "b4e7a3f0-0000-11f1-8000-000000000002"
MARKS = [FileIdentity(f"binlog.{number:06}", 1000 + number, 11) for number in range(3, 6)]
POSITION = Position("binlog.000005", 400)


def known(server: str = ONE) -> LogIdentity:
    identity = LogIdentity(MemorySourceRecords(), 0)
    identity.save_server("db:3306", server)
    for mark in MARKS:
        identity.save_file(mark)
    return identity


def judged(
    identity: LogIdentity, server: str, marks: list[FileIdentity], position: Position = POSITION, executed: str = ""
) -> LogMatch:
    by_name = {mark.file: mark for mark in marks}
    gtids = GtidSet.parse(executed) if executed else None
    inventory = LogInventory(server, dict.fromkeys(by_name, 1000), Position(marks[-1].file, 900, gtids=gtids), None)
    return identity.compare(inventory, position, by_name.__getitem__)


def moved(marks: list[FileIdentity], *, files: int = 0, began: int = 0, server_id: int = 11) -> list[FileIdentity]:
    return [
        FileIdentity(f"binlog.{Position(mark.file, 0).file_number + files:06}", mark.began + began, server_id)
        for mark in marks
    ]


@pytest.mark.parametrize("server", [ONE, ""], ids=["uuid", "no uuid"])
def test_the_same_log_has_the_same_files(server: str) -> None:
    assert judged(known(server), server, MARKS) is LogMatch.SAME
    assert judged(known(server), server, [*MARKS[1:], FileIdentity("binlog.000006", 2000, 11)]) is LogMatch.SAME


@pytest.mark.parametrize("server", [ONE, ""], ids=["uuid", "no uuid"])
def test_a_purged_log_is_still_the_same(server: str) -> None:
    assert judged(known(server), server, moved(MARKS, files=7, began=500)) is LogMatch.SAME


@pytest.mark.parametrize("server", [ONE, ""], ids=["uuid", "no uuid"])
def test_a_log_that_was_reset(server: str) -> None:
    assert judged(known(server), server, moved(MARKS, began=500)) is LogMatch.RESET
    assert judged(known(server), server, [FileIdentity("binlog.000001", 5000, 11)]) is LogMatch.RESET


def test_another_server() -> None:
    assert judged(known(), TWO, MARKS) is LogMatch.OTHER_SERVER, "a clone of its files, too"
    assert judged(known(""), "", moved(MARKS, began=3, server_id=12)) is LogMatch.OTHER_SERVER
    assert judged(known(""), "", moved(MARKS, files=90, server_id=12)) is LogMatch.OTHER_SERVER


def test_gtids_that_a_server_had_and_has_no_more() -> None:
    """Its files may look the same."""
    position = replace(POSITION, gtids=GtidSet.parse(f"{ONE}:1-9"))
    assert judged(known(), ONE, MARKS, position, f"{ONE}:1-12") is LogMatch.SAME
    assert judged(known(), ONE, MARKS, position, f"{ONE}:1-8") is LogMatch.RESET


def test_the_first_log_is_taken_as_it_is() -> None:
    assert judged(LogIdentity(MemorySourceRecords(), 0), TWO, moved(MARKS, began=77)) is LogMatch.SAME


def test_the_epoch_is_kept_before_it_counts() -> None:
    records = MemorySourceRecords()
    identity = LogIdentity(records, 3)
    assert identity.epoch == 3
    identity.save_file(MARKS[0])
    assert identity.raise_epoch("other:3306", TWO, by_gtids=True) == 4
    assert records.load() == SourceRecord(4, "other:3306", TWO, {}, True)
    assert LogIdentity(records, 0).epoch == 4, "it never falls"

    class Broken(MemorySourceRecords):
        def save(self, record: SourceRecord) -> None:
            raise OSError(record)

    identity = LogIdentity(Broken(), 0)
    with pytest.raises(OSError, match="other"):
        identity.raise_epoch("other:3306", TWO, by_gtids=True)
    assert identity.epoch == 0


def test_a_file_of_another_beginning_is_not_known() -> None:
    identity = known()
    assert identity.is_known_file(MARKS[1])
    assert identity.is_known_file(FileIdentity("binlog.000099", 1, 1))
    assert not identity.is_known_file(replace(MARKS[1], began=1))
