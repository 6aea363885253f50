"""Cursors of an instance that does not run: look at them, and move them by hand."""

from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime

from penstock.config import InstanceSettings
from penstock.coordinate import ZooKeeperTree
from penstock.errors import ConfigurationError, MetaInUseError, PositionLostError
from penstock.instance.assembly import kept_record, open_bookkeeping
from penstock.instance.lineage import Lineage
from penstock.instance.source_log import SourceLog
from penstock.meta import ClientRecord, Cursor, FileKeeper, MemoryMeta, MemoryRecords, ZooKeeperKeeper
from penstock.meta.zookeeper import ROOT
from penstock.model import Position


def look(settings: InstanceSettings) -> list[ClientRecord]:
    """What is kept of each client; also while a server has them."""
    match settings.meta_kind:
        case "memory":
            raise ConfigurationError(
                f"the cursors of '{settings.destination}' are in memory only: with data_dir or zookeeper they are kept"
            )
        case "file" if settings.data_dir is not None:
            return _sorted(FileKeeper(settings.destination, settings.data_dir).look())
        case _:
            with closing(ZooKeeperTree(settings.zookeeper or "")) as tree:
                return _sorted(ZooKeeperKeeper(settings.destination, tree).load())


def _sorted(records: list[ClientRecord]) -> list[ClientRecord]:
    return sorted(records, key=lambda record: record.client_id)


def check_free(settings: InstanceSettings) -> None:
    """Raise MetaInUseError when a server has the cursors: it would write over a change."""
    if settings.zookeeper is not None:
        with closing(ZooKeeperTree(settings.zookeeper)) as tree:
            if (found := tree.read(f"{ROOT}/{settings.destination}/running")) is not None:
                raise MetaInUseError(
                    f"a server runs '{settings.destination}' ({found[0].decode('utf-8', 'replace')}): stop it first"
                )
    if settings.meta_kind == "file" and settings.data_dir is not None:
        FileKeeper(settings.destination, settings.data_dir).check_free()


@contextmanager
def taken_over(settings: InstanceSettings) -> Generator[MemoryMeta]:
    """Them, for changes that are kept before they count. No server may have them."""
    if settings.meta_kind == "memory":
        look(settings)
    check_free(settings)
    books = open_bookkeeping(settings)
    try:
        books.meta.start()
        yield books.meta
    finally:
        books.close()


@dataclass(frozen=True, slots=True)
class Extent:
    """Of a source's log."""

    first: Position
    end: Position
    sizes: dict[str, int]

    def bytes_between(self, start: Position, end: Position) -> int:
        """Of the log; what is not there any more counts nothing."""
        total = 0
        for file, size in self.sizes.items():
            number = Position(file, 0).file_number
            if start.file_number <= number <= end.file_number:
                low = start.offset if number == start.file_number else 0
                high = end.offset if number == end.file_number else size
                total += max(0, high - low)
        return total


def extent(settings: InstanceSettings) -> Extent:
    log = present_log(settings)
    seen = log.look()
    return Extent(log.places.placed(seen.oldest), log.places.placed(seen.end), seen.sizes)


def present_log(settings: InstanceSettings) -> SourceLog:
    """Of the source that is followed, in its epoch."""
    records = MemoryRecords()
    records.save(kept_record(settings))
    return SourceLog(settings, Lineage(records, settings.epoch))


def find(settings: InstanceSettings, text: str, now: datetime) -> Position:
    """A place between two transactions, as people write it: `first`, `latest`, a position, a time, or a GTID, after
    which it is."""
    log = present_log(settings)
    wanted = log.places.configured(text, now)
    found = log.places.settled(wanted)
    if found != wanted:
        raise PositionLostError(
            f"{wanted} is no place between two transactions of {log.source.address}: the last one before it is {found}"
        )
    return found


def cursor_at(settings: InstanceSettings, position: Position) -> Cursor:
    return Cursor(position, source=settings.source.endpoint)
