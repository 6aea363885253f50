"""The mutant of a seed and a number: bytes of a log file, and how they are to be read."""

import random
import struct
from dataclasses import dataclass
from functools import cache

from penstock.binlog.values.column import DecodeOptions
from tests.campaign.command import COMMANDS
from tests.campaign.holding import ALL
from tests.campaign.logs import HEADER, SourceLog, assembled, sized, source_logs
from tests.campaign.mutation import Events
from tests.twins.event import MAGIC

_COMMANDED = 0.15  # share of the mutants, so that a run stays affordable


@dataclass(frozen=True, slots=True)
class Mutant:
    """`pieces` are the bytes given at a time; none reads it as a file. `command` is what a user does with it."""

    log: str
    what: tuple[str, ...]
    data: bytes
    verify: bool
    pieces: tuple[int, ...] = ()
    block_bytes: int = 1 << 20
    choice: DecodeOptions = DecodeOptions()  # noqa: RUF009 - frozen
    command: str | None = None

    @property
    def is_file(self) -> bool:
        return not self.pieces


@cache
def _pools() -> tuple[tuple[bytes, ...], ...]:
    return tuple(tuple(event for transaction in log.transactions for event in transaction) for log in source_logs())


def mutant(seed: int, number: int) -> Mutant:
    dice = random.Random(f"{seed}:{number}")
    logs = source_logs()
    at = dice.randrange(len(logs)) if dice.random() < 0.3 else dice.randrange(sum("built" not in s.name for s in logs))
    log = logs[at]
    pool = _pools()[at if dice.random() < 0.7 else dice.randrange(len(logs))]
    events: Events = [*map(bytearray, log.opening), *map(bytearray, _window(dice, log))]
    what: list[str] = []
    for _ in range(dice.choice((1, 1, 1, 1, 2, 2, 3, 5))):
        mutation = dice.choice(ALL)
        mutation(dice, events, pool)
        what.append(mutation.__name__)
    data, settings = _file(dice, log, events)
    pieces, block_bytes = _pieces(dice, len(data))
    choice = DecodeOptions(dice.choice(("null", "text", "error")), dice.choice(("text", "number")))
    plain = dice.random() < 0.7
    return Mutant(
        log.name,
        (*what, *settings),
        data,
        verify=dice.random() < 0.7,
        pieces=pieces,
        block_bytes=block_bytes,
        choice=DecodeOptions() if plain else choice,
        command=dice.choice(COMMANDS) if dice.random() < _COMMANDED else None,
    )


def _window(dice: random.Random, log: SourceLog) -> list[bytes]:
    """Some transactions: the shorter a log, the more mutants in a minute, and the fewer events that do not matter."""
    count = dice.choice((1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3, len(log.transactions)))
    first = dice.randrange(max(1, len(log.transactions) - count + 1))
    return [event for transaction in log.transactions[first : first + count] for event in transaction]


def _file(dice: random.Random, log: SourceLog, events: Events) -> tuple[bytes, list[str]]:
    """Put together; sizes, and at times the whole file, are what the mutation is about."""
    what: list[str] = []
    checksummed = log.is_checksummed
    raw = [sized(event, is_checksummed=checksummed) for event in events]
    if dice.random() < 0.06:
        what.append("size")
        event = dice.choice(raw)
        if len(event) >= 13:
            (old,) = struct.unpack_from("<I", event, 9)
            lies = (0, 1, HEADER - 1, HEADER, old + dice.randint(-30, 30), old * 2, 0x7FFFFFFF, 0xFFFFFFFF)
            struct.pack_into("<I", event, 9, dice.choice(lies) & 0xFFFFFFFF)
    if dice.random() < 0.02:
        what.append("checksum algorithm")
        raw[0][-1:] = bytes([dice.choice((0, 1, 2, 255))])
    data = assembled(raw, is_checksummed=checksummed)
    if dice.random() < 0.06:
        what.append("end")
        at = dice.randrange(len(MAGIC), len(data))
        data = data[:at] + dice.choice((b"", dice.randbytes(30), data[at + dice.randrange(40) :]))
    return data, what


def _pieces(dice: random.Random, size: int) -> tuple[tuple[int, ...], int]:
    """Mostly all at once; else as a socket might give it, into small blocks; else as a file."""
    draw = dice.random()
    if draw < 0.6:
        return (max(1, size),), 1 << 20
    if draw < 0.9:
        return tuple(dice.randint(1, 400) for _ in range(5)), dice.choice((64, 512, 4096))
    return (), 1 << 20
