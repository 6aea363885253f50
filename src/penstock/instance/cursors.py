"""Cursors of an instance that does not run: look at them, and move them by hand."""

from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime

from penstock.capture.log_identity import LogIdentity
from penstock.capture.source_log import SourceLog
from penstock.config import InstanceSettings
from penstock.coordinate import ZooKeeperTree
from penstock.errors import ConfigurationError, MetaInUseError, PositionLostError
from penstock.instance.assembly import load_source_record, open_meta_stores
from penstock.meta import ClientRecord, Cursor, FileMetaBackend, MemoryRecords, MetaManager, ZooKeeperMetaBackend
from penstock.meta.zookeeper_backend import ROOT
from penstock.model import Position


def look(settings: InstanceSettings) -> list[ClientRecord]:
    """What is kept of each client; also while a server has them."""
    match settings.meta_kind:
        case "memory":
            raise ConfigurationError(
                f"the cursors of '{settings.destination}' are in memory only: with data_dir or zookeeper they are kept"
            )
        case "file" if settings.data_dir is not None:
            return _sorted(FileMetaBackend(settings.destination, settings.data_dir).look())
        case _:
            with closing(ZooKeeperTree(settings.zookeeper or "")) as tree:
                return _sorted(ZooKeeperMetaBackend(settings.destination, tree).load())


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
        FileMetaBackend(settings.destination, settings.data_dir).check_free()


@contextmanager
def open_for_change(settings: InstanceSettings) -> Generator[MetaManager]:
    """Them, for changes that are kept before they count. No server may have them."""
    if settings.meta_kind == "memory":
        look(settings)
    check_free(settings)
    meta_stores = open_meta_stores(settings)
    try:
        meta_stores.meta.start()
        yield meta_stores.meta
    finally:
        meta_stores.close()


@dataclass(frozen=True, slots=True)
class LogExtent:
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


def extent(settings: InstanceSettings) -> LogExtent:
    log = open_source_log(settings)
    inventory = log.inventory()
    return LogExtent(
        log.resolver.with_current_epoch(inventory.oldest),
        log.resolver.with_current_epoch(inventory.end),
        inventory.sizes,
    )


def open_source_log(settings: InstanceSettings) -> SourceLog:
    """Of the source that is followed, in its epoch."""
    records = MemoryRecords()
    records.save(load_source_record(settings))
    return SourceLog(settings, LogIdentity(records, settings.epoch, settings.destination))


def find(settings: InstanceSettings, text: str, now: datetime) -> Position:
    """Return the position that `text` names, in the grammar of `parse_start`; it lies between two transactions."""
    log = open_source_log(settings)
    wanted = log.resolver.resolve(text, now)
    found = log.resolver.align(wanted)
    if found != wanted:
        raise PositionLostError(
            f"{wanted} is no place between two transactions of {log.source.address}: the last one before it is {found}"
        )
    return found


def cursor_at(settings: InstanceSettings, position: Position) -> Cursor:
    return Cursor(position, source=settings.source.endpoint)
