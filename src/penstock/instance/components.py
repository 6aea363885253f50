"""The components of a started instance, and how they are closed."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from penstock.capture.begin import CaptureStart
from penstock.capture.capture import Capture
from penstock.capture.prepared import PreparedTransactions
from penstock.capture.schema_tracker import SchemaTracker
from penstock.capture.source_log import SourceLog
from penstock.capture.watchdog import Watchdog
from penstock.filter import BlockFilter
from penstock.instance.assembly import MetaStores
from penstock.instance.clients import Clients
from penstock.meta import Cursor
from penstock.store import EventStore

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """Everything that a started instance consists of: stores, capture, clients, filter, schema tracker, watchdog."""

    meta_stores: MetaStores
    log: SourceLog
    store: EventStore
    clients: Clients
    tables: SchemaTracker
    filter: BlockFilter
    prepared: PreparedTransactions
    capture: Capture
    watchdog: Watchdog
    begin: CaptureStart

    def save_position(self) -> None:
        """Persist the position from which capture would resume."""
        self.meta_stores.positions.save(Cursor(self.store.acked, source=self.log.source.endpoint))

    def close(self) -> None:
        """Persist cursors and positions, and close files and connections."""
        run_all_steps(
            self.meta_stores.meta.destination,
            self.save_position,
            self.prepared.save,
            self.meta_stores.close,
            self.store.stop,
            self.tables.close,
        )


def run_all_steps(destination: str, *steps: Callable[[], None]) -> None:
    """Run all steps in their order; one that fails is logged and does not keep the others from running."""
    for step in steps:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - the others are to be done all the same
            log.warning("error while closing instance destination=%s reason=%s", destination, error)
