"""Positions in a folder of log files: its ends, a GTID, a time, and what lies between two of them."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from penstock.capture.log_identity import LogIdentity
from penstock.capture.source_log import SourceLog
from penstock.config import DirectorySettings, InstanceSettings
from penstock.errors import BinlogError, PositionLostError, SourceConnectionError
from penstock.meta import MemorySourceRecords
from penstock.model import GtidSet, Position
from penstock.store import Start
from tests.support.shop_log import PRODUCT, written
from tests.twins import event as ev
from tests.twins.log import SOURCE, LogWriter
from tests.twins.row import INSERT

SECOND = 1_000_000
COUNT = 4  # transactions in a file
NUMBERS = (7, 8, 9)


def previous_gtids(last: int) -> bytes:
    ranges = (1).to_bytes(8, "little") + (1).to_bytes(8, "little") + (last + 1).to_bytes(8, "little")
    return (1).to_bytes(8, "little") + SOURCE.bytes + ranges if last else bytes(8)


def gtid_list(last: int) -> bytes:
    gtid = (5).to_bytes(4, "little") + (1).to_bytes(4, "little") + last.to_bytes(8, "little")
    return (1).to_bytes(4, "little") + gtid if last else bytes(4)


@pytest.fixture(params=["mariadb", "mysql"])
def is_mariadb(request: pytest.FixtureRequest) -> bool:
    return request.param == "mariadb"


@pytest.fixture
def logs(tmp_path: Path, is_mariadb: bool) -> list[LogWriter]:
    """File 7 has transactions 1 to 4 of the seconds 1000 to 1003, file 8 those after, from 2000 on, and so on."""
    writers = list[LogWriter]()
    for index, number in enumerate(NUMBERS):
        log = LogWriter(file=f"binlog.{number:06}", is_mariadb=is_mariadb, timestamp=1000 * (index + 1)).open()
        log._number = COUNT * index
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
        writers.append(log)
    return writers


def log_of(folder: Path) -> SourceLog:
    records = MemorySourceRecords()
    return SourceLog(
        InstanceSettings(source=DirectorySettings(path=str(folder), poll_s=0.001, trust_ends=True)),
        LogIdentity(records, 2),
    )


def configured(log: SourceLog, text: str) -> Position:
    return log.resolver.align(log.resolver.resolve(text, datetime.now(UTC)))


def text_of(gtids: GtidSet | None) -> str:
    assert gtids is not None
    return gtids.text


def executed(number: int, *, is_mariadb: bool) -> str:
    if not number:
        return ""
    return f"5-1-{number}" if is_mariadb else f"{SOURCE}:1-{number}" if number > 1 else f"{SOURCE}:1"


def test_its_ends(tmp_path: Path, logs: list[LogWriter], is_mariadb: bool) -> None:
    log = log_of(tmp_path)
    oldest, end = configured(log, "earliest"), configured(log, "latest")
    assert (oldest, end) == (
        Position("binlog.000007", 4, epoch=2),
        Position("binlog.000009", logs[-1].position, epoch=2),
    )
    assert text_of(oldest.gtids) == ""
    assert text_of(end.gtids) == executed(3 * COUNT, is_mariadb=is_mariadb)
    assert (log.oldest(), log.end()) == (oldest, end)


def test_the_end_is_before_what_is_not_whole(tmp_path: Path, logs: list[LogWriter]) -> None:
    path = tmp_path / logs[-1].file
    path.write_bytes(path.read_bytes()[:-40])
    assert log_of(tmp_path).end() == Position(logs[-1].file, logs[-1].boundaries[-2], epoch=2)


def test_after_each_gtid(tmp_path: Path, logs: list[LogWriter], is_mariadb: bool) -> None:
    log = log_of(tmp_path)
    for number in range(1, 3 * COUNT + 1):
        writer = logs[(number - 1) // COUNT]
        position = log.find(Start.after_gtid(f"5-1-{number}" if is_mariadb else f"{SOURCE}:{number}"))
        assert position == Position(writer.file, writer.boundaries[2 + (number - 1) % COUNT], epoch=2)
        assert text_of(position.gtids) == executed(number, is_mariadb=is_mariadb)
    with pytest.raises(PositionLostError, match="has no transaction"):
        log.find(Start.after_gtid("5-1-99" if is_mariadb else f"{SOURCE}:99"))


def test_at_each_time(tmp_path: Path, logs: list[LogWriter]) -> None:
    log = log_of(tmp_path)
    for writer, second in zip(logs, range(1, 4), strict=True):
        for row in range(1, COUNT):
            time_us = (1000 * second + row) * SECOND
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
    with pytest.raises(PositionLostError, match="is ahead of the log"):
        log.check_reached(Position("binlog.000010", 4, epoch=2))


def test_a_log_without_gtids(tmp_path: Path) -> None:
    log = LogWriter(is_mariadb=False).open()
    log.add(ev.PREVIOUS_GTIDS, previous_gtids(0))
    log.add(ev.QUERY, ev.query(b"BEGIN"))
    log.add(ev.XID, ev.xid())
    written(log, tmp_path)
    source = log_of(tmp_path)
    assert configured(source, "earliest").gtids is None
    assert (source.end().gtids, source.end().offset) == (None, log.position)
    with pytest.raises(PositionLostError, match="has no GTIDs"):
        configured(source, f"{SOURCE}:1")


def test_a_set_of_gtids_is_a_position(tmp_path: Path, logs: list[LogWriter], is_mariadb: bool) -> None:
    log = log_of(tmp_path)
    for number in range(COUNT, 3 * COUNT + 1):
        writer = logs[(number - 1) // COUNT]
        position = log.resolver.find_after_gtids(GtidSet.parse(executed(number, is_mariadb=is_mariadb)))
        expected = Position(writer.file, writer.boundaries[2 + (number - 1) % COUNT], epoch=2)
        # Between the last transaction of a file and the first of the next there are two positions.
        later = Position(logs[number // COUNT].file, 4, epoch=2) if number % COUNT == 0 and number < 12 else expected
        assert expected <= position <= max(expected, replace(later, offset=1 << 10))
        assert text_of(position.gtids) == executed(number, is_mariadb=is_mariadb)


def test_the_end_moves_with_the_files(tmp_path: Path, logs: list[LogWriter]) -> None:
    """What was looked at is not read again, and another file of that name is noticed."""
    path = tmp_path / logs[-1].file
    data = path.read_bytes()
    log = log_of(tmp_path)
    for boundary in logs[-1].boundaries[1:]:
        path.write_bytes(data[:boundary])
        assert log.end() == Position(logs[-1].file, boundary, epoch=2)
    assert log.end().gtids == log_of(tmp_path).end().gtids
    path.write_bytes(data[: logs[-1].boundaries[2]])
    assert log.end() == Position(logs[-1].file, logs[-1].boundaries[2], epoch=2)
    written(logs[0], tmp_path, logs[-1].file)
    assert log.end() == Position(logs[-1].file, logs[0].position, epoch=2)


@pytest.mark.parametrize("size", [0, 3, 4, 50, 130])
def test_a_file_without_its_first_events_does_not_count_yet(tmp_path: Path, logs: list[LogWriter], size: int) -> None:
    path = tmp_path / logs[-1].file
    path.write_bytes(path.read_bytes()[:size])
    log = log_of(tmp_path)
    assert log.end() == Position(logs[-2].file, logs[-2].position, epoch=2)
    assert log.inventory().files == [writer.file for writer in logs[:-1]]


def test_marks_are_those_of_the_stream(tmp_path: Path, logs: list[LogWriter]) -> None:
    log = log_of(tmp_path)
    for writer in logs:
        for offset in (4, writer.boundaries[2]):
            with log.open_stream(Position(writer.file, offset, epoch=2)) as stream:
                next(iter(stream))
                assert stream.file_identity == log.binlog_source.file_identity(writer.file)


def test_what_cannot_be_found(tmp_path: Path) -> None:
    with pytest.raises(SourceConnectionError, match="no log files"):
        log_of(tmp_path).oldest()
    (tmp_path / "binlog.000001").write_bytes(b"\xfd" + b"bin" + bytes(600))
    with pytest.raises(BinlogError, match="is encrypted, and only its server has the key: capture from the server"):
        log_of(tmp_path).oldest()
