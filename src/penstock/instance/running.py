"""The parts of an instance that was started, and how they are let go."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from penstock.filter import BlockFilter
from penstock.instance.assembly import Bookkeeping
from penstock.instance.begin import Begin
from penstock.instance.capture import Capture
from penstock.instance.clients import Clients
from penstock.instance.prepared import PreparedTransactions
from penstock.instance.source_log import SourceLog
from penstock.instance.tables import Tables
from penstock.instance.watchdog import Watchdog
from penstock.meta import Cursor
from penstock.store import EventStore

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    books: Bookkeeping
    log: SourceLog
    store: EventStore
    clients: Clients
    tables: Tables
    filter: BlockFilter
    prepared: PreparedTransactions
    capture: Capture
    watchdog: Watchdog
    begin: Begin

    def save_place(self) -> None:
        """From where capture would go on."""
        self.books.positions.save(Cursor(self.store.acked, source=self.log.source.endpoint))

    def close(self) -> None:
        """Keep what is to be kept, and let go of files and connections."""
        in_turn(self.save_place, self.prepared.save, self.books.close, self.store.stop, self.tables.close)


def in_turn(*steps: Callable[[], None]) -> None:
    """All of them, whatever becomes of one."""
    for step in steps:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - the others are to be done all the same
            log.warning("not all was kept reason=%s", error)
