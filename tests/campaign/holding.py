"""What is done to events that hold others: to what they hold, and to what they say of it."""

import random
import struct
from collections.abc import Sequence

from tests.campaign.logs import HEADER, sized
from tests.campaign.mutation import PLAIN, Events, Mutation
from tests.campaign.payload import Field, closed, deflated, fields_of, inflated, opened
from tests.twins.hold import PARTIAL_ROW_DATA, fragments

_IN_FRAGMENTS = {*range(23, 26), *range(30, 33), *range(166, 172)}
_METHODS = (0, 1, 7, 255)


def inside(dice: random.Random, events: Events, pool: Sequence[bytes]) -> None:
    """Mutate what a compressed event holds, and compress it again."""
    holders = [(i, payload) for i, event in enumerate(events) if (payload := _held(event)) is not None]
    if not holders:
        return dice.choice(PLAIN)(dice, events, pool)
    i, (at, held) = dice.choice(holders)
    # The first is spared by some mutations, as the one that opens a file.
    inner = [bytearray(HEADER), *held]
    for _ in range(dice.choice((1, 1, 2))):
        dice.choice(PLAIN)(dice, inner, pool)
    if at:
        events[i] = deflated(events[i], at, b"".join(event[HEADER:] for event in inner[1:]))
        return None
    if dice.random() < 0.9:
        for event in inner[1:]:
            event[9:13] = len(event).to_bytes(4, "little")
    events[i] = closed(events[i], inner[1:])
    return None


def _held(event: bytearray) -> tuple[int, Events] | None:
    """Events inside, and where the compressed part begins when it is rows that are."""
    if rows := inflated(event):
        # As a rows event of its own, for mutations that look for one.
        return rows[0], [bytearray(event[:4]) + bytes([23]) + bytes(HEADER - 5) + rows[1]]
    try:
        payload = opened(event)
    except (OSError, ValueError, IndexError, KeyError, AssertionError, OverflowError, struct.error):
        return None  # it was mutated before
    return (0, payload) if payload else None


def misdeclare(dice: random.Random, events: Events, pool: Sequence[bytes]) -> None:
    """A payload or a compressed event whose fields lie: sizes, method, fields twice or not at all."""
    holders = [(i, payload) for i, event in enumerate(events) if (payload := _held(event)) is not None]
    if not holders:
        return dice.choice(PLAIN)(dice, events, pool)
    i, (at, held) = dice.choice(holders)
    if at:
        rows = b"".join(event[HEADER:] for event in held)
        events[i] = deflated(events[i], at, rows, said=_lie(dice, len(rows)), width=dice.randint(0, 7))
        return None
    fields = fields_of(held, is_compressed=dice.random() < 0.7)
    for _ in range(dice.choice((1, 1, 2))):
        k = dice.randrange(len(fields)) if fields else 0
        match dice.choice(("lie", "lie", "lie", "method", "drop", "repeat", "number")):
            case "lie" if fields:
                fields[k] = Field(fields[k].number, _lie(dice, fields[k].value))
            case "method":
                fields = [entry if entry.number != 2 else Field(2, dice.choice(_METHODS)) for entry in fields]
            case "drop" if fields:
                del fields[k]
            case "repeat" if fields:
                fields.append(Field(fields[k].number, _lie(dice, fields[k].value)))
            case "number" if fields:
                fields[k] = Field(dice.randint(1, 300), fields[k].value)
            case _:
                pass
    events[i] = closed(events[i], held, fields)
    return None


def _lie(dice: random.Random, value: int) -> int:
    some = (0, 1, value - 1, value + 1, value * 2, value // 2, value + 19, 1 << 31, 1 << 40, (1 << 64) - 1)
    return dice.choice((*some, dice.getrandbits(20))) & (1 << 64) - 1


def in_fragments(dice: random.Random, events: Events, pool: Sequence[bytes]) -> None:
    """A rows event in pieces, as MariaDB 12.3 writes a large one; at times with one too few, or in another order."""
    some = [i for i, event in enumerate(events) if len(event) > HEADER and event[4] in _IN_FRAGMENTS]
    if not some:
        return dice.choice(PLAIN)(dice, events, pool)
    i = dice.choice(some)
    whole = bytes(sized(events[i], is_checksummed=False))
    bodies = fragments(whole, dice.randint(5, max(6, len(whole))))
    pieces = [bytearray(whole[:4]) + bytes([PARTIAL_ROW_DATA]) + whole[5:HEADER] + body for body in bodies]
    match dice.choice(("whole", "drop", "swap", "repeat", "between", "inside")):
        case "drop":
            del pieces[dice.randrange(len(pieces))]
        case "swap":
            dice.shuffle(pieces)
        case "repeat":
            pieces.insert(dice.randrange(len(pieces)), bytearray(dice.choice(pieces)))
        case "between":
            pieces.insert(dice.randrange(len(pieces)), bytearray(dice.choice(pool)))
        case "inside":
            piece = dice.choice(pieces)
            piece[dice.randrange(HEADER, min(len(piece), HEADER + 17))] = dice.choice((0, 1, 2, 127, 255))
        case _:
            pass
    events[i : i + 1] = pieces
    return None


ALL: tuple[Mutation, ...] = (*PLAIN, inside, inside, inside, inside, misdeclare, misdeclare, in_fragments)
