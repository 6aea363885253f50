"""How an instance finds its place, and opens its components there."""

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
from penstock.capture.schema_import import has_history, import_with_retry, open_tables, record_skipped_statements
from penstock.capture.schema_tracker import SchemaTracker
from penstock.capture.source_log import SourceLog
from penstock.capture.state import StateTracker
from penstock.capture.watchdog import Watchdog
from penstock.config import InstanceSettings
from penstock.coordinate import Fence
from penstock.disk import make_tree_private
from penstock.errors import ConfigurationError, MetaError, PenstockError, PositionLostError, SourceConnectionError
from penstock.filter import BlockFilter
from penstock.instance.assembly import MetaStores, open_meta_stores, open_prepared, open_store
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
    """Nothing runs yet but what keeps cursors. What is open when one of them cannot be opened is closed again."""
    alive = check_settings(settings, can_repair=repair is not None)
    if settings.data_dir is not None:
        make_tree_private(settings.data_dir / settings.destination)
    meta_stores = open_meta_stores(settings, fence)
    opened: list[Callable[[], None]] = [meta_stores.close]
    try:
        if isinstance(meta_stores.meta, PersistentMetaManager):
            meta_stores.meta.on_fenced = on_fenced
        meta_stores.meta.start()
        opening = _Opening(settings, meta_stores, alive)
        source_log = opening.log
        store = open_store(settings, opening.start, source_log)
        opened.append(store.stop)
        begin = opening.bring_up(store)
        endpoint = lambda: source_log.source.endpoint  # noqa: E731
        clients = Clients(store, meta_stores.meta, source=endpoint, check_cursor=opening.check_cursor)
        clients.start()
        tables = open_tables(settings, source_log.source, store.latest)
        opened.append(tables.close)
        opening.check_tables(tables, store.latest)
        rules = BlockFilter(settings.filter)
    except BaseException:
        run_all_steps(settings.destination, *opened)
        raise
    log_start(settings, begin)
    source_log.complete = tables.complete
    prepared = source_log.prepared = open_prepared(settings, source_log)
    stages = (("tables", tables.follow), ("filter", rules.apply))

    def on_jump(before: Position | None, place: Position) -> None:
        _go_on_with(tables, source_log, before, place, verify=settings.verify_checksum)
        prepared.switch_to(before, place if before is not None else None)

    components = CaptureContext(
        settings, source_log, opening.identity, store, states, counters, prepared, stages, on_jump
    )
    capture = Capture(components, jitter=jitter, repair=repair)
    places = (lambda: store.acked), (lambda: store.latest)
    watchdog = Watchdog(settings, source_log, *places, capture.mark_source_dead, tables.compact)
    return Components(meta_stores, source_log, store, clients, tables, rules, prepared, capture, watchdog, begin)


def check_settings(settings: InstanceSettings, *, can_repair: bool = False) -> set[str]:
    """Addresses of the sources that can be captured; raises what keeps an instance from being started. Nothing is
    opened for it, so one that runs need not be stopped."""
    check_start(settings.start)  # also where cursors count and `start` is not used
    if settings.on_purged == "repair" and not can_repair:
        raise ConfigurationError(f"on_purged: repair of '{settings.destination}' has nothing that could repair")
    return _answering(settings)


def _answering(settings: InstanceSettings) -> set[str]:
    """Addresses of the sources that can be captured; raises what is wrong with the first when none can."""
    alive: set[str] = set()
    problem: PenstockError | None = None
    for source in settings.sources:
        try:
            open_source(source).check(is_standby=source is settings.standby)
            alive.add(source.address)
        except SourceConnectionError as error:
            problem = problem or error
    if problem is not None and not alive:
        raise problem
    return alive


def _go_on_with(
    tables: SchemaTracker, source_log: SourceLog, after: Position | None, place: Position, *, verify: bool
) -> None:
    """In another log: with the tables that there were `after` a place, or read anew from the source."""
    if after is not None and tables.can_continue_at(after):
        tables.continue_at(place)
        return
    found = import_with_retry(source_log.source, place, verify=verify)
    tables.restart(found.begin, found.first, found.later)


class _Opening:
    """`start` is where the store begins if it has nothing: at the lowest cursor, or what stands in for it, or where the
    settings say."""

    def __init__(self, settings: InstanceSettings, meta_stores: MetaStores, alive: Container[str]) -> None:
        self._settings, self._meta_stores = settings, meta_stores
        self.identity = LogIdentity(meta_stores.records, settings.epoch, settings.destination)
        self.log = SourceLog(settings, self.identity)
        if self.log.source.address not in alive:
            self.log.source = next(one for one in settings.sources if one.address in alive)
        self._inventory = self.log.inventory()
        self._place = self._kept_place()
        self._log_match = self.identity.compare(
            self._inventory, self._place or self._inventory.end, self.log.binlog_source.file_identity
        )
        if self._log_match is not LogMatch.SAME and self._place is None:
            # There is nothing to go on from.
            self.identity.raise_epoch(self.log.source.address, self._inventory.server, by_gtids=False)
            self._log_match = LogMatch.SAME
        start = self._place or self.log.resolver.resolve(settings.start, datetime.now(UTC))
        start = self._without_stragglers(start)
        self._is_here = self._facts_of(start).is_same_log
        self.start = self._settled(start) if self._is_here else start

    def _facts_of(self, position: Position) -> ResumeFacts:
        return ResumeFacts(self.log.source.address, position, self.identity.epoch, self._log_match, self._inventory)

    def _kept_place(self) -> Position | None:
        for client_id, cursor in self._meta_stores.meta.cursors().items():
            self._check_epoch(client_id, cursor.position)
        found = self._meta_stores.positions.load()
        return found.position if found is not None and found.position.epoch <= self.log.epoch else None

    def _without_stragglers(self, start: Position) -> Position:
        """Where an empty store begins: not at the cursor of a client that is farther behind the others than the store
        holds, who would wait until all of that was read again. Such a client is served from the source's log."""
        cursors = [cursor.position for cursor in self._meta_stores.meta.cursors().values()]
        latest, log = (
            max(cursors, default=start),
            LogExtent(self._inventory.oldest, self._inventory.end, self._inventory.sizes),
        )
        if latest.epoch != start.epoch or not has_history(self._settings):
            return start  # the tables of the log are known only from where it is read
        known = [one for one in cursors if one.epoch == latest.epoch and one.file in log.sizes]
        near = [one for one in known if log.bytes_between(one, latest) <= self._settings.store.memory]
        return max(start, min(near, default=start))

    def _settled(self, start: Position) -> Position:
        """Between two transactions, and with its GTIDs; what the log lacks is refused later, with the reason."""
        try:
            return start if start.gtids is not None else self.log.resolver.align(start)
        except PositionLostError:
            return start

    def bring_up(self, store: EventStore) -> CaptureStart:
        """To a place in the log that is followed, from which all clients can go on; returns why there."""
        has_events = store.first != store.latest
        if self._place is not None and store.latest < self._place:
            store.restart_at(self._place)  # a crash has left it behind all clients
        if self._is_here and store.latest.epoch == self.identity.epoch:
            self._check_reached(store)
            if self._settings.on_purged == "stop":
                self._check_purged(store, self._meta_stores.meta)
        if self._facts_of(store.latest).is_older_epoch:
            # The source was switched before, and nothing of the new log has come into the store yet.
            store.continue_at(self.log.translate(store.discard_incomplete()))
        return explain_start(self._settings, store.latest, has_cursor=self._place is not None, has_events=has_events)

    def _check_reached(self, store: EventStore) -> None:
        self.log.check_reached(store.latest, self.log.resolver.with_current_epoch(self._inventory.end))
        for client_id, cursor in self._meta_stores.meta.cursors().items():
            self.check_cursor(client_id, cursor.position)

    def check_cursor(self, client_id: int, position: Position) -> None:
        """Raises when the log cannot have it."""
        self._check_epoch(client_id, position)
        if position.epoch == self.log.epoch:
            self.log.check_reached(position, whose=f"the cursor of client {client_id}, ")

    def _check_epoch(self, client_id: int, position: Position) -> None:
        if position.epoch > self.log.epoch:
            raise MetaError(
                f"the cursor of client {client_id} is at {position}, and this log is of epoch {self.log.epoch}:"
                " with `penstock position set` or `reset` say where it resumes"
            )

    def _check_purged(self, store: EventStore, meta: MetaManager) -> None:
        """What the source no longer has stops the clients that need it, and nobody else."""
        oldest = self.log.resolver.with_current_epoch(self._inventory.oldest)
        cursors = meta.cursors()
        if store.latest >= oldest:
            far = {name: one.position for name, one in cursors.items() if one.position < min(oldest, store.first)}
            if lost := ", ".join(str(name) for name, one in far.items() if one.epoch == oldest.epoch):
                log.error(
                    "clients lost destination=%s clients=%s oldest=%s reason=the source has purged what they need: say"
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
            log.error("clients lost destination=%s clients=%s reason=%s", self._settings.destination, lost, gap)
            store.restart_at(start)

    def check_tables(self, tables: SchemaTracker, start: Position) -> None:
        """What is known of them must lead up to where capture goes on."""
        marks, verify = self.identity.record.files, self._settings.verify_checksum
        followed = [file for file in marks if file in self._inventory.sizes]
        is_unknown = bool(marks) and not followed and tables.can_continue_at(start)
        if tables.epoch < start.epoch or is_unknown:
            _go_on_with(tables, self.log, None, start, verify=verify)
        elif followed and start.epoch == self.identity.epoch:
            begin = Position(followed[-1], 4, epoch=start.epoch)
            record_skipped_statements(tables, self.log.source, begin, start, verify=verify)
