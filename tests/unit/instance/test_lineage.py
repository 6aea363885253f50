"""Which log a server has, told by its uuid, the beginnings of its files, and GTIDs."""

from dataclasses import replace

import pytest

from penstock.instance.lineage import Kinship, Lineage
from penstock.meta import MemoryRecords, SourceRecord
from penstock.model import FileMark, GtidSet, Position
from penstock.source import Seen

ONE = "b4e7a3f0-0000-11f1-8000-000000000001"
TWO = "b4e7a3f0-0000-11f1-8000-000000000002"
MARKS = [FileMark(f"binlog.{number:06}", 1000 + number, 11) for number in range(3, 6)]
PLACE = Position("binlog.000005", 400)


def known(server: str = ONE) -> Lineage:
    lineage = Lineage(MemoryRecords(), 0)
    lineage.adopt("db:3306", server)
    for mark in MARKS:
        lineage.note(mark)
    return lineage


def judged(
    lineage: Lineage, server: str, marks: list[FileMark], place: Position = PLACE, executed: str = ""
) -> Kinship:
    by_name = {mark.file: mark for mark in marks}
    gtids = GtidSet.parse(executed) if executed else None
    seen = Seen(server, dict.fromkeys(by_name, 1000), Position(marks[-1].file, 900, gtids=gtids), None)
    return lineage.judge(seen, place, by_name.__getitem__)


def moved(marks: list[FileMark], *, files: int = 0, began: int = 0, server_id: int = 11) -> list[FileMark]:
    return [
        FileMark(f"binlog.{Position(mark.file, 0).file_number + files:06}", mark.began + began, server_id)
        for mark in marks
    ]


@pytest.mark.parametrize("server", [ONE, ""], ids=["uuid", "no uuid"])
def test_the_same_log_has_the_same_files(server: str) -> None:
    assert judged(known(server), server, MARKS) is Kinship.SAME
    assert judged(known(server), server, [*MARKS[1:], FileMark("binlog.000006", 2000, 11)]) is Kinship.SAME


@pytest.mark.parametrize("server", [ONE, ""], ids=["uuid", "no uuid"])
def test_a_purged_log_is_still_the_same(server: str) -> None:
    assert judged(known(server), server, moved(MARKS, files=7, began=500)) is Kinship.SAME


@pytest.mark.parametrize("server", [ONE, ""], ids=["uuid", "no uuid"])
def test_a_log_that_began_anew(server: str) -> None:
    assert judged(known(server), server, moved(MARKS, began=500)) is Kinship.ANEW
    assert judged(known(server), server, [FileMark("binlog.000001", 5000, 11)]) is Kinship.ANEW


def test_another_server() -> None:
    assert judged(known(), TWO, MARKS) is Kinship.ANOTHER, "a clone of its files, too"
    assert judged(known(""), "", moved(MARKS, began=3, server_id=12)) is Kinship.ANOTHER
    assert judged(known(""), "", moved(MARKS, files=90, server_id=12)) is Kinship.ANOTHER


def test_gtids_that_a_server_had_and_has_no_more() -> None:
    """Its files may look the same."""
    place = replace(PLACE, gtids=GtidSet.parse(f"{ONE}:1-9"))
    assert judged(known(), ONE, MARKS, place, f"{ONE}:1-12") is Kinship.SAME
    assert judged(known(), ONE, MARKS, place, f"{ONE}:1-8") is Kinship.ANEW


def test_the_first_log_is_taken_as_it_is() -> None:
    assert judged(Lineage(MemoryRecords(), 0), TWO, moved(MARKS, began=77)) is Kinship.SAME


def test_the_epoch_is_kept_before_it_counts() -> None:
    records = MemoryRecords()
    lineage = Lineage(records, 3)
    assert lineage.epoch == 3
    lineage.note(MARKS[0])
    assert lineage.rise("other:3306", TWO, by_gtids=True) == 4
    assert records.load() == SourceRecord(4, "other:3306", TWO, {}, True)
    assert Lineage(records, 0).epoch == 4, "it never falls"

    class Broken(MemoryRecords):
        def save(self, record: SourceRecord) -> None:
            raise OSError(record)

    lineage = Lineage(Broken(), 0)
    with pytest.raises(OSError, match="other"):
        lineage.rise("other:3306", TWO, by_gtids=True)
    assert lineage.epoch == 0


def test_a_file_of_another_beginning_is_not_known() -> None:
    lineage = known()
    assert lineage.is_known(MARKS[1])
    assert lineage.is_known(FileMark("binlog.000099", 1, 1))
    assert not lineage.is_known(replace(MARKS[1], began=1))
