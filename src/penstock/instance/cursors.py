"""Reads and moves the cursors of an instance that does not run, for `penstock position`."""

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
from penstock.meta import ClientRecord, Cursor, FileMetaBackend, MemorySourceRecords, MetaManager, ZooKeeperMetaBackend
from penstock.meta.zookeeper_backend import ROOT
from penstock.model import Position
from penstock.source.binlog_source import measure_bytes


def read_client_records(settings: InstanceSettings) -> list[ClientRecord]:
    """Return the persisted subscription and cursor of each client. A server may be using them meanwhile."""
    match settings.meta_kind:
        case "memory":
            raise ConfigurationError(
                f"the cursors of '{settings.destination}' are in memory only: with data_dir or zookeeper they are kept"
            )
        case "file" if settings.data_dir is not None:
            return _sort_by_client(FileMetaBackend(settings.destination, settings.data_dir).read_records())
        case _:
            with closing(ZooKeeperTree(settings.zookeeper or "")) as tree:
                return _sort_by_client(ZooKeeperMetaBackend(settings.destination, tree).load())


def _sort_by_client(records: list[ClientRecord]) -> list[ClientRecord]:
    return sorted(records, key=lambda record: record.client_id)


def check_not_in_use(settings: InstanceSettings) -> None:
    """Raise MetaInUseError while a server is using the cursors: it would overwrite a change."""
    if settings.zookeeper is not None:
        with closing(ZooKeeperTree(settings.zookeeper)) as tree:
            if (running := tree.read(f"{ROOT}/{settings.destination}/running")) is not None:
                raise MetaInUseError(
                    f"a server runs '{settings.destination}' ({running[0].decode('utf-8', 'replace')}): stop it first"
                )
    if settings.meta_kind == "file" and settings.data_dir is not None:
        FileMetaBackend(settings.destination, settings.data_dir).check_not_in_use()


@contextmanager
def open_for_change(settings: InstanceSettings) -> Generator[MetaManager]:
    """Open the cursors of an instance for changes, which are persisted before they take effect. No server may be using
    them."""
    if settings.meta_kind == "memory":
        read_client_records(settings)
    check_not_in_use(settings)
    meta_stores = open_meta_stores(settings)
    try:
        meta_stores.meta.start()
        yield meta_stores.meta
    finally:
        meta_stores.close()


@dataclass(frozen=True, slots=True)
class LogExtent:
    """The first position, the end, and the sizes of the files of a source's log."""

    first: Position
    end: Position
    sizes: dict[str, int]

    def bytes_between(self, start: Position, end: Position) -> int:
        """Return how many bytes of the log lie between two positions. Purged files count as empty."""
        return measure_bytes(self.sizes, start, end)


def measure_source_log(settings: InstanceSettings) -> LogExtent:
    """Return where the source's log begins and ends now, and the sizes of its files."""
    log = open_source_log(settings)
    inventory = log.inventory()
    return LogExtent(
        log.resolver.with_current_epoch(inventory.oldest),
        log.resolver.with_current_epoch(inventory.end),
        inventory.sizes,
    )


def open_source_log(settings: InstanceSettings) -> SourceLog:
    """Return a reader of the log that an instance follows, in its epoch, without running the instance."""
    records = MemorySourceRecords()
    records.save(load_source_record(settings))
    return SourceLog(settings, LogIdentity(records, settings.epoch, settings.destination))


def find_position(settings: InstanceSettings, text: str, now: datetime) -> Position:
    """Return the position that `text` names, in the grammar of `parse_start`. Raises PositionLostError unless it is a
    transaction boundary."""
    log = open_source_log(settings)
    requested = log.resolver.resolve(text, now)
    position = log.resolver.align(requested)
    if position != requested:
        raise PositionLostError(
            f"{requested} is no transaction boundary of {log.source.address}: the last one before it is {position}"
        )
    return position


def make_cursor(settings: InstanceSettings, position: Position) -> Cursor:
    """Return a cursor at a position of the instance's source."""
    return Cursor(position, source=settings.source.endpoint)
