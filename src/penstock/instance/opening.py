"""How an instance finds its place, and opens its parts there."""

import logging
from collections.abc import Callable, Container
from datetime import UTC, datetime

from penstock.config import InstanceSettings
from penstock.coordinate import Fence
from penstock.disk import make_tree_private
from penstock.errors import ConfigurationError, MetaError, PenstockError, PositionLostError, SourceConnectionError
from penstock.filter import BlockFilter
from penstock.inspect.place import parse_place
from penstock.instance.assembly import Bookkeeping, open_bookkeeping, open_prepared, open_store
from penstock.instance.begin import Begin, judge_begin, log_begin
from penstock.instance.capture import Capture, Parts, Repair
from penstock.instance.clients import Clients
from penstock.instance.counters import Counters
from penstock.instance.cursors import Extent
from penstock.instance.gap import gap_of
from penstock.instance.lineage import Kinship, Lineage
from penstock.instance.running import Running, in_turn
from penstock.instance.schema_import import has_history, import_patiently, open_tables, record_between
from penstock.instance.source_log import SourceLog
from penstock.instance.state import StateBook
from penstock.instance.tables import Tables
from penstock.instance.watchdog import Watchdog
from penstock.meta import KeptMeta, MemoryMeta
from penstock.model import Position
from penstock.source import origin_of
from penstock.store import EventStore

log = logging.getLogger(__name__)


def open_parts(
    settings: InstanceSettings,
    states: StateBook,
    counters: Counters,
    *,
    jitter: Callable[[], float],
    repair: Repair | None,
    on_fenced: Callable[[PenstockError], None],
    fence: Fence | None = None,
) -> Running:
    """Nothing runs yet but what keeps cursors. What is open when one of them cannot be opened is closed again."""
    alive = check_settings(settings, can_repair=repair is not None)
    if settings.data_dir is not None:
        make_tree_private(settings.data_dir / settings.destination)
    books = open_bookkeeping(settings, fence)
    opened: list[Callable[[], None]] = [books.close]
    try:
        if isinstance(books.meta, KeptMeta):
            books.meta.on_fenced = on_fenced
        books.meta.start()
        opening = _Opening(settings, books, alive)
        source_log = opening.log
        store = open_store(settings, opening.start, source_log)
        opened.append(store.stop)
        begin = opening.bring_up(store)
        endpoint = lambda: source_log.source.endpoint  # noqa: E731
        clients = Clients(store, books.meta, source=endpoint, check_cursor=opening.check_cursor)
        clients.start()
        tables = open_tables(settings, source_log.source, store.latest)
        opened.append(tables.close)
        opening.check_tables(tables, store.latest)
        rules = BlockFilter(settings.filter)
    except BaseException:
        in_turn(*opened)
        raise
    log_begin(settings, begin)
    source_log.complete = tables.complete
    prepared = source_log.prepared = open_prepared(settings, source_log)
    stages = (("tables", tables.follow), ("filter", rules.apply))

    def on_jump(before: Position | None, place: Position) -> None:
        _go_on_with(tables, source_log, before, place, verify=settings.verify_checksum)
        prepared.switch_to(before, place if before is not None else None)

    parts = Parts(settings, source_log, opening.lineage, store, states, counters, prepared, stages, on_jump)
    capture = Capture(parts, jitter=jitter, repair=repair)
    places = (lambda: store.acked), (lambda: store.latest)
    watchdog = Watchdog(settings, source_log, *places, capture.give_up_on, tables.compact)
    return Running(books, source_log, store, clients, tables, rules, prepared, capture, watchdog, begin)


def check_settings(settings: InstanceSettings, *, can_repair: bool = False) -> set[str]:
    """Addresses of the sources that can be captured; raises what keeps an instance from being started. Nothing is
    opened for it, so one that runs need not be stopped."""
    if settings.start not in {None, "first", "latest"}:
        parse_place(settings.start or "", datetime.now(UTC))  # a mistake is said also where cursors count
    if settings.on_purged == "repair" and not can_repair:
        raise ConfigurationError(f"on_purged: repair of '{settings.destination}' has nothing that could repair")
    return _answering(settings)


def _answering(settings: InstanceSettings) -> set[str]:
    """Addresses of the sources that can be captured; raises what is wrong with the first when none can."""
    alive: set[str] = set()
    problem: PenstockError | None = None
    for source in settings.sources:
        try:
            origin_of(source).check(is_standby=source is settings.standby)
            alive.add(source.address)
        except SourceConnectionError as error:
            problem = problem or error
    if problem is not None and not alive:
        raise problem
    return alive


def _go_on_with(
    tables: Tables, source_log: SourceLog, after: Position | None, place: Position, *, verify: bool
) -> None:
    """In another log: with the tables that there were `after` a place, or read anew from the source."""
    if after is not None and tables.continues(after):
        tables.go_on_at(place)
        return
    found = import_patiently(source_log.source, place, verify=verify)
    tables.restart(found.begin, found.first, found.later)


class _Opening:
    """`start` is where the store begins if it has nothing: at the lowest cursor, or what stands in for it, or where the
    settings say."""

    def __init__(self, settings: InstanceSettings, books: Bookkeeping, alive: Container[str]) -> None:
        self._settings, self._books = settings, books
        self.lineage = Lineage(books.records, settings.epoch)
        self.log = SourceLog(settings, self.lineage)
        if self.log.source.address not in alive:
            self.log.source = next(one for one in settings.sources if one.address in alive)
        self._seen = self.log.look()
        self._place = self._kept_place()
        self._kinship = self.lineage.judge(self._seen, self._place or self._seen.end, self.log.origin.mark_of)
        if self._kinship is not Kinship.SAME and self._place is None:
            # There is nothing to go on from.
            self.lineage.rise(self.log.source.address, self._seen.server, by_gtids=False)
            self._kinship = Kinship.SAME
        start = self._place or self.log.places.configured(settings.start, datetime.now(UTC))
        start = self._without_stragglers(start)
        self._is_here = self._kinship is Kinship.SAME and start.epoch == self.lineage.epoch
        self.start = self._settled(start) if self._is_here else start

    def _kept_place(self) -> Position | None:
        for client_id, cursor in self._books.meta.cursors().items():
            self._check_epoch(client_id, cursor.position)
        found = self._books.positions.load()
        return found.position if found is not None and found.position.epoch <= self.log.epoch else None

    def _without_stragglers(self, start: Position) -> Position:
        """Where an empty store begins: not at the cursor of a client that is farther behind the others than the store
        holds, who would wait until all of that was read again. Such a client is served from the source's log."""
        cursors = [cursor.position for cursor in self._books.meta.cursors().values()]
        latest, log = max(cursors, default=start), Extent(self._seen.oldest, self._seen.end, self._seen.sizes)
        if latest.epoch != start.epoch or not has_history(self._settings):
            return start  # the tables of the log are known only from where it is read
        known = [one for one in cursors if one.epoch == latest.epoch and one.file in log.sizes]
        near = [one for one in known if log.bytes_between(one, latest) <= self._settings.store.memory]
        return max(start, min(near, default=start))

    def _settled(self, start: Position) -> Position:
        """Between two transactions, and with its GTIDs; what the log lacks is refused later, with the reason."""
        try:
            return start if start.gtids is not None else self.log.places.settled(start)
        except PositionLostError:
            return start

    def bring_up(self, store: EventStore) -> Begin:
        """To a place in the log that is followed, from which all clients can go on; returns why there."""
        has_events = store.first != store.latest
        if self._place is not None and store.latest < self._place:
            store.restart_at(self._place)  # a crash has left it behind all clients
        if self._is_here and store.latest.epoch == self.lineage.epoch:
            self._check_reached(store)
            if self._settings.on_purged == "stop":
                self._check_purged(store, self._books.meta)
        if self._kinship is Kinship.SAME and store.latest.epoch < self.lineage.epoch:
            # The source was switched before, and nothing of the new log has come into the store yet.
            store.go_on_at(self.log.translated(store.discard_incomplete()))
        return judge_begin(self._settings, store.latest, has_cursor=self._place is not None, has_events=has_events)

    def _check_reached(self, store: EventStore) -> None:
        self.log.check_reached(store.latest, self.log.places.placed(self._seen.end))
        for client_id, cursor in self._books.meta.cursors().items():
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
                " with `penstock position set` or `reset` say where it is to go on"
            )

    def _check_purged(self, store: EventStore, meta: MemoryMeta) -> None:
        """What the source no longer has stops the clients that need it, and nobody else."""
        oldest = self.log.places.placed(self._seen.oldest)
        cursors = meta.cursors()
        if store.latest >= oldest:
            far = {name: one.position for name, one in cursors.items() if one.position < min(oldest, store.first)}
            if lost := ", ".join(str(name) for name, one in far.items() if one.epoch == oldest.epoch):
                log.error(
                    "the source no longer has what a client needs: its log begins at %s: lost client(s)=%s"
                    " destination=%s: say with `penstock position set` where it resumes, or forget it with `reset`",
                    oldest, lost, self._settings.destination,
                )  # fmt: skip
            return
        later = [cursor.position for cursor in cursors.values() if cursor.position >= oldest]
        lost = ", ".join(str(client_id) for client_id, cursor in cursors.items() if cursor.position < oldest)
        problem = gap_of(self.log.origin, store.latest, self._seen)
        if problem.is_empty:
            return  # capture gets over it
        if not later:
            remedy = "choose a later start, or remove the store's files if there are any"
            if lost:
                remedy = f"say with `penstock position set` where client {lost} goes on"
            raise PositionLostError(f"{problem}: {remedy}; SHOW BINARY LOGS lists what it has")
        log.error("%s: lost client(s)=%s destination=%s", problem, lost, self._settings.destination)
        store.restart_at(min(later))

    def check_tables(self, tables: Tables, start: Position) -> None:
        """What is known of them must lead up to where capture goes on."""
        marks, verify = self.lineage.record.marks, self._settings.verify_checksum
        followed = [file for file in marks if file in self._seen.sizes]
        is_unknown = bool(marks) and not followed and tables.continues(start)
        if tables.epoch < start.epoch or is_unknown:
            _go_on_with(tables, self.log, None, start, verify=verify)
        elif followed and start.epoch == self.lineage.epoch:
            begin = Position(followed[-1], 4, epoch=start.epoch)
            record_between(tables, self.log.source, begin, start, verify=verify)
