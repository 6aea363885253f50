"""Places in a folder of log files: its ends, a GTID, a time, and what lies between two of them."""

from itertools import pairwise
from pathlib import Path

import pytest

from penstock.config import DirectorySettings
from penstock.errors import ConfigurationError, PositionLostError
from penstock.instance.directory_log import DirectoryLog
from penstock.model import GtidSet, Position
from penstock.store import Start
from tests.twins import event as ev
from tests.twins.log import SOURCE, LogWriter
from tests.twins.row import INSERT
from tests.unit.render.shop_log import PRODUCT, written

SECOND = 1_000_000
COUNT = 4  # transactions in a file
NUMBERS = (7, 8, 9)


def previous_gtids(last: int) -> bytes:
    ranges = (1).to_bytes(8, "little") + (1).to_bytes(8, "little") + (last + 1).to_bytes(8, "little")
    return (1).to_bytes(8, "little") + SOURCE.bytes + ranges if last else bytes(8)


def gtid_list(last: int) -> bytes:
    one = (5).to_bytes(4, "little") + (1).to_bytes(4, "little") + last.to_bytes(8, "little")
    return (1).to_bytes(4, "little") + one if last else bytes(4)


@pytest.fixture(params=["mariadb", "mysql"])
def is_mariadb(request: pytest.FixtureRequest) -> bool:
    return request.param == "mariadb"


@pytest.fixture
def logs(tmp_path: Path, is_mariadb: bool) -> list[LogWriter]:
    """File 7 has transactions 1 to 4 of the seconds 1000 to 1003, file 8 those after, from 2000 on, and so on."""
    found = list[LogWriter]()
    for place, number in enumerate(NUMBERS):
        log = LogWriter(file=f"binlog.{number:06}", is_mariadb=is_mariadb, timestamp=1000 * (place + 1)).open()
        log._number = COUNT * place
        body = gtid_list(log._number) if is_mariadb else previous_gtids(log._number)
        log.add(ev.MARIADB_GTID_LIST if is_mariadb else ev.PREVIOUS_GTIDS, body)
        log.boundaries.append(log.position)
        for row in range(COUNT):
            log.begin()
            log.map(7, PRODUCT)
            log.rows(INSERT, 7, PRODUCT, [[row, "x", None]])
            log.commit()
            log.timestamp += 1
        written(log, tmp_path, log.file)
        found.append(log)
    return found


def log_of(folder: Path) -> DirectoryLog:
    return DirectoryLog(DirectorySettings(path=str(folder)), epoch=2)


def text_of(gtids: GtidSet | None) -> str:
    assert gtids is not None
    return gtids.text


def executed(number: int, *, is_mariadb: bool) -> str:
    if not number:
        return ""
    return f"5-1-{number}" if is_mariadb else f"{SOURCE}:1-{number}" if number > 1 else f"{SOURCE}:1"


def test_its_ends(tmp_path: Path, logs: list[LogWriter], is_mariadb: bool) -> None:
    log = log_of(tmp_path)
    oldest, end = log.oldest(), log.end()
    assert (oldest, end) == (
        Position("binlog.000007", 4, epoch=2),
        Position("binlog.000009", logs[-1].position, epoch=2),
    )
    assert text_of(oldest.gtids) == ""
    assert text_of(end.gtids) == executed(3 * COUNT, is_mariadb=is_mariadb)
    assert (log.find(Start.first()), log.find(Start.latest())) == (oldest, end)


def test_the_end_is_before_what_is_not_whole(tmp_path: Path, logs: list[LogWriter]) -> None:
    path = tmp_path / logs[-1].file
    path.write_bytes(path.read_bytes()[:-40])
    assert log_of(tmp_path).end() == Position(logs[-1].file, logs[-1].boundaries[-2], epoch=2)


def test_after_each_gtid(tmp_path: Path, logs: list[LogWriter], is_mariadb: bool) -> None:
    log = log_of(tmp_path)
    for number in range(1, 3 * COUNT + 1):
        writer = logs[(number - 1) // COUNT]
        place = log.find(Start.after_gtid(f"5-1-{number}" if is_mariadb else f"{SOURCE}:{number}"))
        assert place == Position(writer.file, writer.boundaries[2 + (number - 1) % COUNT], epoch=2)
        assert text_of(place.gtids) == executed(number, is_mariadb=is_mariadb)
    with pytest.raises(PositionLostError, match="have no transaction"):
        log.find(Start.after_gtid("5-1-99" if is_mariadb else f"{SOURCE}:99"))


def test_at_each_time(tmp_path: Path, logs: list[LogWriter]) -> None:
    log = log_of(tmp_path)
    for writer, place in zip(logs, range(1, 4), strict=True):
        for row in range(1, COUNT):
            time_us = (1000 * place + row) * SECOND
            assert log.find(Start.at_time(time_us)) == Position(writer.file, writer.boundaries[1 + row], epoch=2)
    assert log.find(Start.at_time(10_000 * SECOND)) == log.end()
    assert log.find(Start.at_time(0)).file == logs[0].file


def test_what_lies_between(tmp_path: Path, logs: list[LogWriter]) -> None:
    log = log_of(tmp_path)
    marks = [Position(writer.file, at, epoch=2) for writer in logs for at in writer.boundaries[1:]]
    whole = [at for block in log.read_log(marks[0], marks[-1]) for at in block.column("position").tolist()]
    pieces = [
        at for pair in pairwise(marks) for block in log.read_log(*pair) for at in block.column("position").tolist()
    ]
    assert pieces == whole
    with pytest.raises(PositionLostError, match="is not there"):
        list(log.read_log(marks[0], Position("binlog.000010", 4, epoch=2)))


def test_a_log_without_gtids(tmp_path: Path) -> None:
    log = LogWriter(is_mariadb=False).open()
    log.add(ev.PREVIOUS_GTIDS, previous_gtids(0))
    log.add(ev.QUERY, ev.query(b"BEGIN"))
    log.add(ev.XID, ev.xid())
    written(log, tmp_path)
    assert log_of(tmp_path).oldest().gtids is None
    end = log_of(tmp_path).end()
    assert end.gtids is None or not end.gtids.ranges


def test_what_cannot_be_found(tmp_path: Path) -> None:
    with pytest.raises(PositionLostError, match="no log files"):
        log_of(tmp_path).oldest()
    with pytest.raises(ConfigurationError, match="nothing to find"):
        log_of(tmp_path).find(Start.at(Position("binlog.000001", 4)))
