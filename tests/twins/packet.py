"""Packets of the replication stream: a builder, and the twin of the unwrapper."""

LARGEST = 0xFFFFFF


def wrap(payload: bytes, number: int = 0) -> bytes:
    """One payload as packets; a full packet is followed by another, if need be by an empty one."""
    out, at = bytearray(), 0
    while True:
        part = payload[at : at + LARGEST]
        out += len(part).to_bytes(3, "little") + bytes([number & 0xFF]) + part
        at, number = at + len(part), number + 1
        if len(part) < LARGEST:
            return bytes(out)


def unwrap(stream: bytes) -> tuple[bytes, int, int]:
    """Event bytes of a whole stream, the status that ended it (0: none), and how many bytes were read."""
    events, at, is_continued = bytearray(), 0, False
    while at < len(stream):
        size = int.from_bytes(stream[at : at + 3], "little")
        payload = stream[at + 4 : at + 4 + size]
        at += 4
        if payload and not is_continued and payload[0]:
            return bytes(events), payload[0], at + 1
        events += payload if is_continued else payload[1:]
        at += len(payload)
        is_continued = size == LARGEST
    return bytes(events), 0, at


def unwrap_semi_sync(stream: bytes) -> tuple[bytes, int, int, bool]:
    """The same for who has asked for semi-sync; and whether an event was to be acknowledged. The first packet with an
    event shows whether there are two bytes more."""
    events, at, is_continued, is_on, is_asked = bytearray(), 0, False, None, False
    while at < len(stream):
        size = int.from_bytes(stream[at : at + 3], "little")
        payload = stream[at + 4 : at + 4 + size]
        at += 4
        if payload and not is_continued:
            if payload[0]:
                return bytes(events), payload[0], at + 1, is_asked
            if is_on is None and len(payload) > 1:
                is_on = payload[1] == 0xEF
            if is_on and len(payload) > 1 and payload[1] != 0xEF:
                return bytes(events), 256, at + 1, is_asked
            is_asked = is_asked or bool(is_on and payload[2:3] and payload[2] & 1)
            events += payload[3 if is_on else 1 :]
        else:
            events += payload
        at += len(payload)
        is_continued = size == LARGEST
    return bytes(events), 0, at, is_asked
