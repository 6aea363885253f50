"""The parts of an instance that the capture loop reads and changes."""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.binlog.events.block import Block
from penstock.capture.counters import CaptureCounters
from penstock.capture.gap import Gap
from penstock.capture.log_identity import LogIdentity
from penstock.capture.prepared import PreparedTransactions
from penstock.capture.source_log import SourceLog
from penstock.capture.state import StateTracker
from penstock.config import InstanceSettings
from penstock.model import Position
from penstock.store import EventStore

Repair = Callable[[Gap], None]


Stage = Callable[[Block], Block]
"""What is done with a block before it is put into the store."""


@dataclass(frozen=True, slots=True)
class CaptureContext:
    """The parts of an instance that capture reads and changes. `on_jump` is called before capture resumes at a position
    that does not follow the last one: with the position before, None if nothing before it counts, and the new one."""

    settings: InstanceSettings
    log: SourceLog
    identity: LogIdentity
    store: EventStore
    states: StateTracker
    counters: CaptureCounters
    prepared: PreparedTransactions
    stages: tuple[tuple[str, Stage], ...] = ()
    on_jump: Callable[[Position | None, Position], None] = lambda _before, _position: None
    """Called with (previous, new) before capture resumes at `new`. `previous` is None if `new` does not continue what
    was captured; then the schemas of tables must be read again."""
