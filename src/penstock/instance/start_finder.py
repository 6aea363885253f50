"""Finds the position at which an instance resumes: asks the source, lets `plan_start` decide, does what it decided."""

import logging
from collections.abc import Container
from dataclasses import replace
from datetime import UTC, datetime

from penstock.capture.begin import CaptureStart, explain_start
from penstock.capture.gap import describe_gap
from penstock.capture.log_identity import LogIdentity, LogMatch
from penstock.capture.resume import LostPosition, ResumeFacts
from penstock.capture.schema_import import has_history, import_with_retry, record_skipped_statements
from penstock.capture.schema_tracker import SchemaTracker
from penstock.capture.source_log import SourceLog
from penstock.capture.start_plan import (
    KeepStore,
    LeaveToCapture,
    RestartStore,
    StartFacts,
    TranslateStore,
    choose_empty_start,
    needs_new_epoch,
    plan_start,
)
from penstock.config import InstanceSettings
from penstock.errors import MetaError, PositionLostError
from penstock.instance.assembly import MetaStores
from penstock.model import Position
from penstock.store import EventStore

log = logging.getLogger(__name__)


def continue_schemas(
    tables: SchemaTracker,
    source_log: SourceLog,
    after: Position | None,
    position: Position,
    settings: InstanceSettings,
) -> None:
    """Continue the schema history at `position` of another log: with the schemas that were known at `after`, or with
    schemas that are read from the source."""
    if after is not None and tables.can_continue_at(after):
        tables.continue_at(position)
        return
    imported = import_with_retry(source_log.source, position, settings.destination, verify=settings.verify_checksum)
    tables.restart(imported.begin, imported.first, imported.later)


class StartFinder:
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
        if needs_new_epoch(self._log_match, self._saved_position):
            self.identity.raise_epoch(self.log.source.address, self._inventory.server, by_gtids=False)
            self._log_match = LogMatch.SAME
        start = self._saved_position or self.log.resolver.resolve(settings.start, datetime.now(UTC))
        if has_history(settings):  # else the tables of the log are known only from where it is read
            start = self._skip_distant_cursors(start)
        self._begins_in_log = self._gather_facts(start).is_same_log
        self.start = self._align(start) if self._begins_in_log else start

    @property
    def oldest(self) -> Position:
        """The position where the source's log begins."""
        return self.log.resolver.with_current_epoch(self._inventory.oldest)

    def _gather_facts(self, position: Position) -> ResumeFacts:
        """Return what decides whether capture can resume at a position."""
        source, record = self.log.binlog_source, self.identity.record
        return ResumeFacts(
            self.log.source.address,
            position,
            record.epoch,
            self._log_match,
            self._inventory,
            takes_gtids=source.takes_gtids,
            by_gtids=record.by_gtids,
            window_s=0.0,  # a start does not wait; the capture thread does
        )

    def _cursor_positions(self) -> dict[int, Position]:
        """Return the position of each client's cursor."""
        return {client_id: cursor.position for client_id, cursor in self._meta_stores.meta.cursors().items()}

    def _load_saved_position(self) -> Position | None:
        """Return the persisted position of capture, or None if there is none of this log."""
        for client_id, cursor in self._meta_stores.meta.cursors().items():
            self._check_epoch(client_id, cursor.position)
        cursor = self._meta_stores.positions.load()
        return cursor.position if cursor is not None and cursor.position.epoch <= self.log.epoch else None

    def _skip_distant_cursors(self, start: Position) -> Position:
        """Return where an empty store begins, given the cursors of all clients and the memory of the store."""
        inventory = self._inventory
        return choose_empty_start(
            start,
            self._cursor_positions().values(),
            is_in_log=lambda cursor: cursor.file in inventory.sizes,
            bytes_between=inventory.bytes_between,
            limit_bytes=self._settings.store.memory,
        )

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
        self._continue_store(store)
        return explain_start(
            self._settings, store.latest, has_cursor=self._saved_position is not None, has_events=has_events
        )

    def _continue_store(self, store: EventStore) -> None:
        """Carry out what `plan_start` decides about the store. Raises PositionLostError when no client can resume."""
        facts = StartFacts(
            self._gather_facts(store.latest),
            store.first,
            self.oldest,
            self._cursor_positions(),
            self._settings.on_purged,
            self._begins_in_log,
        )
        if facts.is_in_log:
            self._check_reached(store)
            if store.latest < facts.oldest:
                facts = replace(facts, gap=describe_gap(self.log.binlog_source, store.latest, self._inventory))
        match plan_start(facts):
            case KeepStore(lost_clients):
                if lost_clients:
                    log.error(
                        "source purged changes that clients need destination=%s clients=%s oldest=%s: set where"
                        " each resumes with `penstock position set`, or remove its cursor with `penstock position"
                        " reset`",
                        self._settings.destination, ", ".join(map(str, lost_clients)), facts.oldest,
                    )  # fmt: skip
            case RestartStore(position, lost_clients, gap):
                log.error(
                    "source purged changes that clients need destination=%s clients=%s reason=%s: the store begins"
                    " again, empty, at a later position",
                    self._settings.destination, ", ".join(map(str, lost_clients)), gap,
                )  # fmt: skip
                store.restart_at(position)
            case TranslateStore():
                store.continue_at(self.log.translate(store.discard_incomplete()))
            case LostPosition(reason):
                raise PositionLostError(reason)
            case LeaveToCapture():
                pass

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

    def prepare_schemas(self, tables: SchemaTracker, start: Position) -> None:
        """Make the schema history continue up to the position where capture resumes, or read the schemas from the
        source."""
        identities = self.identity.record.files
        followed = [file for file in identities if file in self._inventory.sizes]
        is_unknown = bool(identities) and not followed and tables.can_continue_at(start)
        if tables.epoch < start.epoch or is_unknown:
            continue_schemas(tables, self.log, None, start, self._settings)
        elif followed and start.epoch == self.identity.epoch:
            begin = Position(followed[-1], 4, epoch=start.epoch)
            record_skipped_statements(tables, self.log.source, begin, start, self._settings)
