"""Which of several files are read from a time on."""

from pathlib import Path

import pytest

from penstock.binlog.events.file_log import FileLog
from penstock.inspect.selection import EventSelection
from penstock.model.start_point import Moment
from tests.support.shop_log import PRODUCT, written
from tests.twins.log import LogWriter
from tests.twins.row import INSERT

SECOND = 1_000_000


def file_of(folder: Path, number: int, opened_s: int, *commits_s: int) -> Path:
    log = LogWriter(timestamp=opened_s).open()
    for second in commits_s:
        log.timestamp = second
        log.begin()
        log.map(7, PRODUCT)
        log.rows(INSERT, 7, PRODUCT, [[second, "x", None]])
        log.commit()
    return written(log, folder, f"binlog.{number:06}")


def files_read(paths: list[Path], since_s: int) -> list[str]:
    return list(dict.fromkeys(block.file for block in FileLog(paths, Moment(since_s * SECOND), print, verify=True)))


def test_files_that_end_before_are_not_read(tmp_path: Path) -> None:
    paths = [file_of(tmp_path, i, 1000 * i, 1000 * i, 1000 * i + 999) for i in range(1, 5)]
    assert files_read(paths, 3500) == ["binlog.000003", "binlog.000004"]
    assert files_read(paths, 9000) == ["binlog.000004"]
    assert files_read(paths, 10) == [path.name for path in paths]


@pytest.mark.parametrize("late_files", [1, 2, 3])
def test_a_file_is_opened_at_the_time_at_which_a_statement_began(tmp_path: Path, late_files: int) -> None:
    """Long statements make the server open one file after the other; before each others have committed later."""
    paths = [file_of(tmp_path, 1, 1000, 1000), file_of(tmp_path, 2, 1900, 1950, 2100)]
    paths += [file_of(tmp_path, 2 + i, 1990, 1990, 2100 + i) for i in range(1, late_files)]
    paths.append(file_of(tmp_path, 3 + late_files, 1990, 1990, 2200))
    assert files_read(paths, 2000) == [path.name for path in paths[1:]]
    selection = EventSelection(since=Moment(2000 * SECOND))
    picked = [selection.pick_events(block) for block in FileLog(paths, selection.since, print, verify=True)]
    seconds = {int(second) for block in picked for second in block.column("timestamp")}
    assert seconds == {2200, *range(2100, 2100 + late_files)}


def test_a_time_that_a_session_made_up_hides_no_file(tmp_path: Path) -> None:
    """SET TIMESTAMP = 1, and then the file is full."""
    paths = [
        file_of(tmp_path, 1, 1000, 1500),
        file_of(tmp_path, 2, 2000, 2500),
        file_of(tmp_path, 3, 3000, 3500),
        file_of(tmp_path, 4, 4000, 1),
        file_of(tmp_path, 5, 1, 1, 5500),
    ]
    assert files_read(paths, 2600) == [path.name for path in paths[1:]]


def test_a_broken_file_may_have_what_is_wanted(tmp_path: Path) -> None:
    paths = [file_of(tmp_path, i, 1000 * i, 1000 * i) for i in range(1, 4)]
    raw = bytearray(paths[1].read_bytes())
    second = 4 + int.from_bytes(raw[13:17], "little")
    raw[second + 9 : second + 13] = bytes(4)  # the size of the event after the first
    paths[1].write_bytes(raw)
    log = FileLog(paths, Moment(3500 * SECOND), print, verify=True)
    assert log.total == sum(path.stat().st_size for path in paths[1:])
