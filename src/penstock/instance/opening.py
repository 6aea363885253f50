"""Finds the position at which an instance resumes, and opens its components there."""

import logging
from collections.abc import Callable, Container
from datetime import UTC, datetime

from penstock.capture.begin import CaptureStart, explain_start, log_start
from penstock.capture.capture import Capture
from penstock.capture.context import CaptureContext, Repair
from penstock.capture.counters import CaptureCounters
from penstock.capture.gap import describe_gap
from penstock.capture.log_identity import LogIdentity, LogMatch
from penstock.capture.position_resolver import check_start
from penstock.capture.resume import LostPosition, ResumeFacts, plan_purged_start
from penstock.capture.schema_import import has_history, import_with_retry, open_tables_since, record_skipped_statements
from penstock.capture.schema_tracker import SchemaTracker
from penstock.capture.source_log import SourceLog
from penstock.capture.state import StateTracker
from penstock.capture.watchdog import Watchdog
from penstock.config import InstanceSettings
from penstock.coordinate import Fence
from penstock.disk import make_tree_private
from penstock.errors import ConfigurationError, MetaError, PenstockError, PositionLostError, SourceConnectionError
from penstock.filter import BlockFilter
from penstock.instance.assembly import MetaStores, open_meta_stores, open_prepared_transactions, open_store
from penstock.instance.clients import Clients
from penstock.instance.components import Components, run_all_steps
from penstock.instance.cursors import LogExtent
from penstock.meta import MetaManager, PersistentMetaManager
from penstock.model import Position
from penstock.source import open_source
from penstock.store import EventStore

log = logging.getLogger(__name__)


def open_components(
    settings: InstanceSettings,
    states: StateTracker,
    counters: CaptureCounters,
    *,
    jitter: Callable[[], float],
    repair: Repair | None,
    on_fenced: Callable[[PenstockError], None],
    fence: Fence | None = None,
) -> Components:
    """Open all components of an instance at the position where it resumes. Only the meta manager's thread runs yet. If
    one cannot be opened, those before it are closed again."""
    reachable = check_startable(settings, can_repair=repair is not None)
    if settings.data_dir is not None:
        make_tree_private(settings.data_dir / settings.destination)
    meta_stores = open_meta_stores(settings, fence)
    opened: list[Callable[[], None]] = [meta_stores.close]
    try:
        if isinstance(meta_stores.meta, PersistentMetaManager):
            meta_stores.meta.on_fenced = on_fenced
        meta_stores.meta.start()
        finder = _StartFinder(settings, meta_stores, reachable)
        source_log = finder.log
        store = open_store(settings, finder.start, source_log)
        opened.append(store.stop)
        begin = finder.prepare_store(store)
        endpoint = lambda: source_log.source.endpoint  # noqa: E731
        clients = Clients(store, meta_stores.meta, source=endpoint, check_cursor=finder.check_cursor)
        clients.rows.is_counting = counters.kept_rows is not None
        clients.start()
        known_from = finder.oldest if settings.schema_from == "earliest" else store.latest
        tables = open_tables_since(settings, source_log.source, known_from, store.latest)
        opened.append(tables.close)
        finder.prepare_schemas(tables, store.latest)
        block_filter = BlockFilter(settings.filter)
    except BaseException:
        run_all_steps(settings.destination, *opened)
        raise
    log_start(settings, begin)
    source_log.complete = tables.complete
    prepared = source_log.prepared = open_prepared_transactions(settings, source_log)
    stages = (("tables", tables.follow), ("filter", block_filter.apply))

    def on_jump(before: Position | None, position: Position) -> None:
        _continue_schemas(tables, source_log, before, position, verify=settings.verify_checksum)
        prepared.switch_to(before, position if before is not None else None)

    components = CaptureContext(
        settings, source_log, finder.identity, store, states, counters, prepared, stages, on_jump
    )
    capture = Capture(components, jitter=jitter, repair=repair)
    bounds = (lambda: store.acked), (lambda: store.latest)
    watchdog = Watchdog(settings, source_log, *bounds, capture.mark_source_dead, tables.compact)
    return Components(meta_stores, source_log, store, clients, tables, block_filter, prepared, capture, watchdog, begin)


def check_startable(settings: InstanceSettings, *, can_repair: bool = False) -> set[str]:
    """Return the addresses of the sources that can be captured. Raises whatever would keep the instance from starting.
    Nothing is opened, so a running instance need not be stopped for it."""
    check_start(settings.start)  # also where cursors count and `start` is not used
    if settings.on_purged == "repair" and not can_repair:
        raise ConfigurationError(f"on_purged: repair of '{settings.destination}' has nothing that could repair")
    return _find_reachable_sources(settings)


def _find_reachable_sources(settings: InstanceSettings) -> set[str]:
    """Return the addresses of the sources that can be captured. When none can, raises the error of the first."""
    reachable: set[str] = set()
    problem: PenstockError | None = None
    for source in settings.sources:
        try:
            open_source(source).check(is_standby=source is settings.standby)
            reachable.add(source.address)
        except SourceConnectionError as error:
            problem = problem or error
    if problem is not None and not reachable:
        raise problem
    return reachable


def _continue_schemas(
    tables: SchemaTracker, source_log: SourceLog, after: Position | None, position: Position, *, verify: bool
) -> None:
    """Continue the schema history at `position` of another log: with the schemas that were known at `after`, or with
    schemas that are read from the source."""
    if after is not None and tables.can_continue_at(after):
        tables.continue_at(position)
        return
    imported = import_with_retry(source_log.source, position, verify=verify)
    tables.restart(imported.begin, imported.first, imported.later)


class _StartFinder:
    """Finds where an instance resumes. `start` is where an empty store begins: at the lowest cursor, at the saved
    position of capture, or where the settings say."""

    def __init__(self, settings: InstanceSettings, meta_stores: MetaStores, reachable: Container[str]) -> None:
        self._settings, self._meta_stores = settings, meta_stores
        self.identity = LogIdentity(meta_stores.records, settings.epoch, settings.destination)
        self.log = SourceLog(settings, self.identity)
        if self.log.source.address not in reachable:
            self.log.source = next(source for source in settings.sources if source.address in reachable)
        self._inventory = self.log.inventory()
        self._saved_position = self._load_saved_position()
        self._log_match = self.identity.compare(
            self._inventory, self._saved_position or self._inventory.end, self.log.binlog_source.file_identity
        )
        if self._log_match is not LogMatch.SAME and self._saved_position is None:
            # There is no position to resume at.
            self.identity.raise_epoch(self.log.source.address, self._inventory.server, by_gtids=False)
            self._log_match = LogMatch.SAME
        start = self._saved_position or self.log.resolver.resolve(settings.start, datetime.now(UTC))
        start = self._skip_distant_cursors(start)
        self._is_in_log = self._gather_facts(start).is_same_log
        self.start = self._align(start) if self._is_in_log else start

    @property
    def oldest(self) -> Position:
        """The position where the source's log begins."""
        return self.log.resolver.with_current_epoch(self._inventory.oldest)

    def _gather_facts(self, position: Position) -> ResumeFacts:
        """Return what decides whether capture can resume at a position."""
        return ResumeFacts(self.log.source.address, position, self.identity.epoch, self._log_match, self._inventory)

    def _load_saved_position(self) -> Position | None:
        """Return the persisted position of capture, or None if there is none of this log."""
        for client_id, cursor in self._meta_stores.meta.cursors().items():
            self._check_epoch(client_id, cursor.position)
        cursor = self._meta_stores.positions.load()
        return cursor.position if cursor is not None and cursor.position.epoch <= self.log.epoch else None

    def _skip_distant_cursors(self, start: Position) -> Position:
        """Return where an empty store begins: not at the cursor of a client that is farther behind the others than the
        store could hold, because they would wait until all of that was read again. Such a client is served from the
        source's log."""
        cursors = [cursor.position for cursor in self._meta_stores.meta.cursors().values()]
        latest, log = (
            max(cursors, default=start),
            LogExtent(self._inventory.oldest, self._inventory.end, self._inventory.sizes),
        )
        if latest.epoch != start.epoch or not has_history(self._settings):
            return start  # the tables of the log are known only from where it is read
        known = [cursor for cursor in cursors if cursor.epoch == latest.epoch and cursor.file in log.sizes]
        near = [cursor for cursor in known if log.bytes_between(cursor, latest) <= self._settings.store.memory]
        return max(start, min(near, default=start))

    def _align(self, start: Position) -> Position:
        """Return the transaction boundary at or before `start`, with its GTIDs. A position that the log lacks is
        returned as it is, and refused later with the reason."""
        try:
            return start if start.gtids is not None else self.log.resolver.align(start)
        except PositionLostError:
            return start

    def prepare_store(self, store: EventStore) -> CaptureStart:
        """Bring the store to a position of the source's log from which all clients can resume; return that beginning
        and why it was chosen."""
        has_events = store.first != store.latest
        if self._saved_position is not None and store.latest < self._saved_position:
            store.restart_at(self._saved_position)  # a crash has left it behind all clients
        if self._is_in_log and store.latest.epoch == self.identity.epoch:
            self._check_reached(store)
            if self._settings.on_purged == "stop":
                self._check_purged(store, self._meta_stores.meta)
        if self._gather_facts(store.latest).is_older_epoch:
            # The source was switched before, and nothing of the new log has come into the store yet.
            store.continue_at(self.log.translate(store.discard_incomplete()))
        return explain_start(
            self._settings, store.latest, has_cursor=self._saved_position is not None, has_events=has_events
        )

    def _check_reached(self, store: EventStore) -> None:
        """Raise PositionLostError when the store or a cursor is ahead of the end of the source's log."""
        self.log.check_reached(store.latest, self.log.resolver.with_current_epoch(self._inventory.end))
        for client_id, cursor in self._meta_stores.meta.cursors().items():
            self.check_cursor(client_id, cursor.position)

    def check_cursor(self, client_id: int, position: Position) -> None:
        """Raise MetaError or PositionLostError when the source's log cannot have a client's cursor."""
        self._check_epoch(client_id, position)
        if position.epoch == self.log.epoch:
            self.log.check_reached(position, whose=f"the cursor of client {client_id}, ")

    def _check_epoch(self, client_id: int, position: Position) -> None:
        """Raise MetaError for a cursor of a later epoch than that of the source's log."""
        if position.epoch > self.log.epoch:
            raise MetaError(
                f"the cursor of client {client_id} is at {position}, and this log is of epoch {self.log.epoch}:"
                " with `penstock position set` or `reset` say where it resumes"
            )

    def _check_purged(self, store: EventStore, meta: MetaManager) -> None:
        """Handle what the source has purged: only clients that need it are lost. Raises PositionLostError when all of
        them are."""
        oldest = self.log.resolver.with_current_epoch(self._inventory.oldest)
        cursors = meta.cursors()
        if store.latest >= oldest:
            far = {
                name: cursor.position for name, cursor in cursors.items() if cursor.position < min(oldest, store.first)
            }
            if lost := ", ".join(str(name) for name, position in far.items() if position.epoch == oldest.epoch):
                log.error(
                    "source purged changes that clients need destination=%s clients=%s oldest=%s: say"
                    " with `penstock position set` where each resumes, or forget it with `reset`",
                    self._settings.destination, lost, oldest,
                )  # fmt: skip
            return
        lost = ", ".join(str(client_id) for client_id, cursor in cursors.items() if cursor.position < oldest)
        gap = describe_gap(self.log.binlog_source, store.latest, self._inventory)
        start = plan_purged_start(store.latest, oldest, [cursor.position for cursor in cursors.values()], gap)
        if isinstance(start, LostPosition):
            remedy = "choose a later start, or remove the store's files if there are any"
            if lost:
                remedy = f"say with `penstock position set` where client {lost} resumes"
            raise PositionLostError(f"{start.reason}: {remedy}; SHOW BINARY LOGS lists what it has")
        if start != store.latest:  # else nothing is missing, and capture resumes by itself
            log.error(
                "source purged changes that clients need destination=%s clients=%s reason=%s",
                *(self._settings.destination, lost, gap),
            )
            store.restart_at(start)

    def prepare_schemas(self, tables: SchemaTracker, start: Position) -> None:
        """Make the schema history continue up to the position where capture resumes, or read the schemas from the
        source."""
        identities, verify = self.identity.record.files, self._settings.verify_checksum
        followed = [file for file in identities if file in self._inventory.sizes]
        is_unknown = bool(identities) and not followed and tables.can_continue_at(start)
        if tables.epoch < start.epoch or is_unknown:
            _continue_schemas(tables, self.log, None, start, verify=verify)
        elif followed and start.epoch == self.identity.epoch:
            begin = Position(followed[-1], 4, epoch=start.epoch)
            record_skipped_statements(tables, self.log.source, begin, start, verify=verify)
