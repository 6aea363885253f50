"""Events that are indexed by the kernel and by its twin."""

import numpy as np

from penstock.binlog.events.event_arrays import EventArrays
from penstock.binlog.events.index import index_events
from penstock.binlog.events.state import CHECKSUM_BYTES, IN_TRANSACTION, POSITION, TRANSACTION, IndexState
from penstock.binlog.events.stop_reason import StopReason
from tests.twins.index import Indexed, State, index
from tests.twins.log import LogWriter

_FIELDS = tuple(Indexed.__dataclass_fields__)


def both(data: bytes, state: State, capacity: int = 100) -> tuple[StopReason, int, list[Indexed]]:
    """Run kernel and twin; they must agree in everything, also in what they remember."""
    kernel_state, arrays = IndexState.start(verify=state.is_verified), EventArrays.allocate(capacity)
    kernel_state.seek(state.position)
    kernel_state.slots[CHECKSUM_BYTES] = state.checksum
    state.room = kernel_state.known.room
    buffer = np.frombuffer(data, np.uint8)
    at, count, expected = 0, 0, list[Indexed]()
    while True:
        why, where, count = index_events(buffer, at, len(data), kernel_state, arrays, count)
        *twin, indexed = index(data, at, len(data), state, capacity - len(expected))
        expected += indexed
        assert [why, where] == twin
        if why is not StopReason.NEW_TABLE:
            break
        learn(data[where:], kernel_state, state)
        at = where
    columns = [getattr(arrays, name)[:count].tolist() for name in _FIELDS[:-1]]
    events = [Indexed(*cells, bytes(gtid)) for *cells, gtid in zip(*columns, arrays.gtid[:count], strict=True)]
    assert events == expected
    assert [tag.encode() for tag in kernel_state.tag_names] == state.tags
    assert kernel_state.known.ids == {number: state.maps[body] for number, body in state.tables.items()}
    if why in {StopReason.STARVED, StopReason.FULL, StopReason.ATTENTION}:
        assert kernel_state.slots[POSITION] == state.position
        assert (kernel_state.slots[TRANSACTION] < 0) == (state.transaction is None)
        assert bool(kernel_state.slots[IN_TRANSACTION]) == state.in_transaction
    return why, where, events


def learn(data: bytes, kernel_state: IndexState, state: State) -> None:
    """What the reader does with a table map that the kernel does not add by itself."""
    body = data[19 : int.from_bytes(data[9:13], "little") - state.checksum]
    kernel_state.known.learn(body)
    state.learn(body)
    state.room = kernel_state.known.room


def after_format(log: LogWriter) -> tuple[bytes, State]:
    size = int.from_bytes(log.data[9:13], "little")
    return bytes(log.data[size:]), State(4 + size, 4 * log.is_checksummed)
