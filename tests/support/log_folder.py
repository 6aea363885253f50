"""Folders of log files that tests write, and what is read from them."""

from pathlib import Path

from penstock.binlog.events.block import Block
from penstock.config import DirectorySettings
from penstock.model import Position
from penstock.source.directory import DirectoryStream
from tests.support.shop_log import PRODUCT, written
from tests.twins.log import LogWriter
from tests.twins.row import INSERT

NAMES = [f"binlog.{number:06}" for number in range(9, 13)]
FIRST = Position(NAMES[0], 4)


def file_of(number: int, count: int, *, is_mariadb: bool = True, is_checksummed: bool = True) -> LogWriter:
    log = LogWriter(file=f"binlog.{number:06}", is_mariadb=is_mariadb, is_checksummed=is_checksummed).open()
    log._number = number * 100
    for row in range(count):
        log.begin()
        log.map(7, PRODUCT)
        log.rows(INSERT, 7, PRODUCT, [[row, "x" * row, None]])
        log.commit()
    return log


def rotated(number: int, count: int, **changes: bool) -> LogWriter:
    """Without the rotation that a server makes up for its stream."""
    log = file_of(number, count, **changes)
    size = len(log.data)
    log.rotate(f"binlog.{number + 1:06}")
    log.data[:] = log.data[: size + int.from_bytes(log.data[size + 9 : size + 13], "little")]
    return log


def in_folder(folder: Path, logs: list[LogWriter]) -> Path:
    for log, name in zip(logs, NAMES, strict=False):
        written(log, folder, name)
    return folder


def stream_of(
    folder: Path, start: Position = FIRST, *, follow: bool = False, trust_ends: bool = True
) -> DirectoryStream:
    settings = DirectorySettings(path=str(folder), poll_s=0.001, missing_file_timeout_s=0, trust_ends=trust_ends)
    return DirectoryStream(settings, start, follow=follow)


def positions(blocks: list[Block]) -> list[tuple[str, int]]:
    return [(block.file, at) for block in blocks for at in block.column("position").tolist()]


def read(folder: Path, start: Position = FIRST) -> list[Block]:
    with stream_of(folder, start) as stream:
        return [block for block in stream if block is not None]
