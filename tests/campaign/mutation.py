"""What is done to the events of a log. A mutation changes the list of events in place; sizes are corrected later.

`holding` has those for events that hold others.
"""

import random
from collections.abc import Callable, Sequence

from penstock.model import WireType
from tests.campaign.landmark import Landmark, landmarks
from tests.campaign.logs import HEADER, ROWS, TABLE_MAP

Events = list[bytearray]
Mutation = Callable[[random.Random, Events, Sequence[bytes]], None]

_BYTES = (0, 1, 2, 7, 8, 0x10, 0x3F, 0x40, 0x7E, 0x7F, 0x80, 0x81, 0xC0, 0xF0, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF)
_KINDS = (*range(43), *range(160, 173), 200, 255)
_TYPES = (*(kind.value for kind in WireType), 0, 6, 14, 20, 128, 243, 244, 249, 250, 251, 253)
_LONGEST_SPLICE = 40


def _target(dice: random.Random, events: Events) -> bytearray:
    """Usually an event that has a parser of its own."""
    wanted = {TABLE_MAP} if dice.random() < 0.4 else ROWS if dice.random() < 0.7 else None
    some = [event for event in events[1:] if len(event) > HEADER and (wanted is None or event[4] in wanted)]
    return dice.choice(some or events)


def _offset(dice: random.Random, event: bytearray) -> int:
    """A byte of the body; seldom of the header."""
    if len(event) <= HEADER or dice.random() < 0.05:
        return dice.randrange(max(1, len(event)))
    return dice.randrange(HEADER, len(event))


def _number(dice: random.Random, size: int, old: int) -> bytes:
    """Another length of this many bytes: a little off, an edge, or anything."""
    most = (1 << 8 * size) - 1
    choices = (old + dice.choice((-2, -1, 1, 2, 8)), dice.choice((0, most, most >> 1, (most >> 1) + 1)))
    return (dice.choice((*choices, dice.getrandbits(8 * size) if size else 0)) & most).to_bytes(size, "little")


def flip(dice: random.Random, events: Events, _pool: Sequence[bytes]) -> None:
    event = _target(dice, events)
    for _ in range(dice.choice((1, 1, 1, 2, 4, 8)) if event else 0):
        event[_offset(dice, event)] ^= 1 << dice.randrange(8)


def poke(dice: random.Random, events: Events, _: Sequence[bytes]) -> None:
    event = _target(dice, events)
    at = _offset(dice, event)
    size = min(dice.choice((1, 1, 2, 3, 4, 8)), len(event) - at)
    event[at : at + size] = bytes(dice.choice(_BYTES) for _ in range(size))


def value(dice: random.Random, events: Events, pool: Sequence[bytes]) -> None:
    """Bytes of row images only, so that the rows are still found and their values are what is broken."""
    some = [event for event in events if len(event) > HEADER and event[4] in ROWS]
    if not some:
        return flip(dice, events, pool)
    event = dice.choice(some)
    first = max((mark.at for mark in landmarks(event) if mark.what == "metadata"), default=HEADER) + 1
    for _ in range(dice.choice((1, 1, 2, 3)) if first < len(event) else 0):
        at = dice.randrange(first, len(event))
        event[at] = dice.choice((event[at] ^ 1 << dice.randrange(8), dice.choice(_BYTES), dice.randrange(256)))
    return None


def cut(dice: random.Random, events: Events, _: Sequence[bytes]) -> None:
    event = _target(dice, events)
    del event[_offset(dice, event) :]


def take_out(dice: random.Random, events: Events, _: Sequence[bytes]) -> None:
    event = _target(dice, events)
    at = _offset(dice, event)
    del event[at : at + dice.randint(1, 9)]


def put_in(dice: random.Random, events: Events, _: Sequence[bytes]) -> None:
    event = _target(dice, events)
    at = dice.choice((_offset(dice, event), len(event)))
    event[at:at] = dice.randbytes(dice.choice((1, 1, 2, 8, 300)))


def splice(dice: random.Random, events: Events, pool: Sequence[bytes]) -> None:
    """Bytes of another event, over or between these."""
    event, other = _target(dice, events), dice.choice(pool)
    at, first = _offset(dice, event), dice.randrange(len(other))
    some = other[first : first + dice.randint(1, _LONGEST_SPLICE)]
    event[at : at + dice.choice((0, len(some)))] = some


def _marked(dice: random.Random, events: Events, what: str) -> tuple[bytearray, Landmark] | None:
    event = _target(dice, events)
    marks = [mark for mark in landmarks(event) if mark.what == what]
    return (event, dice.choice(marks)) if marks else None


def lie(dice: random.Random, events: Events, pool: Sequence[bytes]) -> None:
    """A length or a count that is not true."""
    marked = _marked(dice, events, "length")
    if marked is None:
        return flip(dice, events, pool)
    event, mark = marked
    old = event[mark.at : mark.at + mark.size]
    if dice.random() < 0.2:  # another form of packed number
        event[mark.at : mark.at + mark.size] = bytes([dice.choice((251, 252, 253, 254, 255))]) + dice.randbytes(8)
    else:
        event[mark.at : mark.at + mark.size] = _number(dice, mark.size, int.from_bytes(old, "little"))
    return None


def retype(dice: random.Random, events: Events, pool: Sequence[bytes]) -> None:
    marked = _marked(dice, events, "type")
    if marked is None:
        return flip(dice, events, pool)
    event, mark = marked
    event[mark.at] = dice.choice((dice.choice(_TYPES), dice.choice(_TYPES), dice.randrange(256)))
    return None


def describe_otherwise(dice: random.Random, events: Events, pool: Sequence[bytes]) -> None:
    """A column's metadata or presence."""
    marked = _marked(dice, events, "metadata")
    if marked is None:
        return flip(dice, events, pool)
    event, mark = marked
    event[mark.at] = dice.choice((dice.choice(_BYTES), dice.randrange(256), event[mark.at] ^ 1 << dice.randrange(8)))
    return None


def rename(dice: random.Random, events: Events, _: Sequence[bytes]) -> None:
    """Another type of event."""
    event = _target(dice, events)
    if len(event) > 4:
        near = event[4] + dice.choice((-1, 1, 7, -7)) & 0xFF
        event[4] = dice.choice((near, dice.choice(_KINDS)))


def reorder(dice: random.Random, events: Events, pool: Sequence[bytes]) -> None:
    """Swap, repeat, leave out or bring in whole events; the first stays."""
    if len(events) < 3:
        return
    a, b = dice.randrange(1, len(events)), dice.randrange(1, len(events))
    match dice.choice(("swap", "repeat", "drop", "move", "bring")):
        case "swap":
            events[a], events[b] = events[b], events[a]
        case "repeat":
            events.insert(b, bytearray(events[a]))
        case "drop":
            del events[a]
        case "move":
            events.insert(b, events.pop(a))
        case _:
            events.insert(a, bytearray(dice.choice(pool)))


def exchange(dice: random.Random, events: Events, pool: Sequence[bytes]) -> None:
    """The table map of another table under this one's id: other columns, or another number of them."""
    mine = [event for event in events if len(event) > HEADER + 8 and event[4] == TABLE_MAP]
    others = [event for event in pool if event[4] == TABLE_MAP]
    if mine and others:
        event, other = dice.choice(mine), dice.choice(others)
        event[HEADER + 6 :] = other[HEADER + 6 :]


PLAIN: tuple[Mutation, ...] = (
    flip, flip, flip, poke, poke, value, value, value, value, cut, take_out, put_in, splice, lie, lie, lie,
    retype, retype, describe_otherwise, describe_otherwise, rename, reorder, exchange,
)  # fmt: skip
