"""Replication stream framing: packets in, event bytes out, as one kernel call per read of the socket.

    packet: length 3 | number 1 | payload          a payload of 2^24-1 bytes continues in the next packet
    payload: status 1 (0 event, 254 end, 255 error) | event
        with semi-sync: status 1 | 0xEF | 1 to be acknowledged, or 0 | event
    acknowledgement: 0xEF | offset 8 | file name

The kernel copes with reads that end anywhere: its state is a few numbers. A server that does not know semi-sync, or has
it turned off, sends plain packets although semi-sync was requested: its first packet shows which.
"""

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.copying import copy_bytes
from penstock.binlog.kernel import BYTES, I64, I64S, PAIR, U8S, kernel


class StateCell(IntEnum):
    """The cells of the unwrapping kernel's state array."""

    HEADER_SEEN = 0  # bytes of the current packet header that were read
    LEFT = 1  # payload bytes of the current packet still to come
    CONTINUES = 2  # the packet continues a former one: no status byte
    STATUS = 3  # 0 while events flow, else the status byte that ended them
    LENGTH = 4
    SEMI_SYNC = 5  # 0: plain packets, 1: with two bytes more, 2: the first packet will show
    ASKED = 6  # an event was to be acknowledged


SEMI_SYNC_MAGIC = 0xEF
NO_MAGIC = 256  # as a status: the two bytes are missing
_ON, _UNKNOWN = 1, 2


@kernel(PAIR(BYTES, I64, I64S, U8S))
def _unwrap_packets(data: Any, end: int, state: Any, out: Any) -> Any:  # noqa: C901, PLR0912 - one loop
    """Copy the event bytes of the packets in data[:end] to `out`, and return (bytes written, bytes read). It stops
    after a packet with a non-zero status.

    `out` is to have room for as many bytes as `data` has: else -1 is written.
    """
    at, to = 0, 0
    while at < end:
        if state[0] < 4:
            if state[0] < 3:
                state[4] |= np.int64(data[at]) << 8 * state[0]
            state[0] += 1
            at += 1
            if state[0] < 4:
                continue
            state[1] = state[4]
            if state[2] == 0:
                state[0] = 5  # the status byte comes next
            if state[1] == 0:
                state[0], state[4], state[2] = 0, 0, 0
            continue
        if state[0] == 5:
            if data[at] != 0:
                state[3] = data[at]
                return to, at + 1
            state[0] = 6 if state[5] else 4
            state[1] -= 1
            at += 1
        if state[0] > 5 and state[1]:
            if at == end:
                break
            if state[0] == 6 and data[at] != SEMI_SYNC_MAGIC:
                if state[5] == _ON:
                    state[3] = NO_MAGIC
                    return to, at
                state[5], state[0] = 0, 4
                continue
            if state[0] == 6:
                state[5], state[0] = _ON, 7
            else:
                state[6] |= data[at] & 1
                state[0] = 4
            state[1] -= 1
            at += 1
            continue
        size = min(state[1], end - at)
        if to + size > out.size:
            return -1, at
        copy_bytes(out, to, data, at, size)
        at += size
        to += size
        state[1] -= size
        if state[1] == 0:
            state[2] = 1 if state[4] == 0xFFFFFF else 0
            state[0], state[4] = 0, 0
    return to, at


class PacketUnwrapper:
    """Takes the packets of a replication connection apart into event bytes; packets may be cut anywhere between two
    calls."""

    def __init__(self, *, semi_sync: bool = False) -> None:
        self._state = np.zeros(len(StateCell), np.int64)
        self._state[StateCell.SEMI_SYNC] = _UNKNOWN if semi_sync else 0

    @property
    def is_semi_sync(self) -> bool:
        """Return whether the server uses semi-sync, as its first packet shows."""
        return bool(self._state[StateCell.SEMI_SYNC] == _ON)

    @property
    def is_ack_requested(self) -> bool:
        """Return whether the server requested an acknowledgement since the last `clear_ack_request`; the event need not
        be complete yet."""
        return bool(self._state[StateCell.ASKED])

    def clear_ack_request(self) -> None:
        """Note that the requested acknowledgement was sent."""
        self._state[StateCell.ASKED] = 0

    @property
    def status(self) -> int:
        """Return 0, or the status byte of the packet that ended the stream."""
        return int(self._state[StateCell.STATUS])

    @property
    def rest_of_packet(self) -> int:
        """Return the bytes that follow the status byte in its packet."""
        return int(self._state[StateCell.LENGTH]) - 1

    def unwrap(self, data: NDArray[np.uint8], end: int, out: NDArray[np.uint8]) -> tuple[int, int]:
        """Copy the event bytes of data[:end] to `out`, and return (bytes written, bytes read)."""
        written, read = _unwrap_packets(data, end, self._state, out)
        return written, read


def encode_acknowledgement(file: str, offset: int) -> bytes:
    """Return the semi-sync packet that acknowledges everything up to a position."""
    payload = bytes([SEMI_SYNC_MAGIC]) + offset.to_bytes(8, "little") + file.encode()
    return len(payload).to_bytes(3, "little") + b"\0" + payload
