"""What a filter keeps, event by event: the slow twin of penstock.filter.BlockFilter, for logs that a test wrote."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

ROWS = {"insert", "update", "delete"}
WANT, WITH, HIDE, DROP = "it passes", "it goes with its transaction", "a mark that nobody wants", "it goes"


@dataclass(frozen=True)
class Event:
    """What a test knows of an event that it wrote."""

    position: int
    role: str  # insert, update, delete, map, note, ddl, dcl, query, mark, outcome, frame
    transaction: int
    tables: tuple[str, ...] = ()  # of rows and maps one; of a statement those that it changes
    is_boundary: bool = False

    @property
    def is_loose(self) -> bool:
        return not self.is_boundary and self.role not in ROWS | {"mark"}


@dataclass
class Kept:
    """What is kept of one block: positions, and which of them are kept as positions only."""

    positions: list[int]
    position_only: set[int] = field(default_factory=set[int])
    is_whole: bool = False


def ends_with_note(events: Sequence[Event]) -> bool:
    """Its rows will come, and say what becomes of it."""
    last = [event.role for event in events if event.role in ROWS | {"note", "map"}][-1:]
    return last == ["note"]


@dataclass
class Filter:
    passes: Callable[[str], bool]
    kinds: set[str]
    transaction: int = -1  # that continues
    shown: bool = False
    held: list[Event] = field(default_factory=list[Event])

    def apply(self, events: Sequence[Event]) -> Kept:
        is_inside = bool(events) and events[0].transaction == self.transaction
        shown, held = (self.shown, self.held) if is_inside else (True, [])
        events = [*held, *events]  # what was held is judged again, with what comes after it
        verdicts = dict(zip(events, self.verdicts(events), strict=True))
        self.transaction = -1 if not events or events[-1].is_boundary else events[-1].transaction
        self.shown, self.held = True, []
        is_left_open = self.transaction >= 0 and ends_with_note(events)
        if shown and not held and not is_left_open and not {HIDE, DROP} & {*verdicts.values()}:
            return Kept([event.position for event in events], is_whole=True)
        shown = is_inside and shown
        kept, position_only = list[Event](), set[int]()
        for transaction, members in groupby(events, key=lambda event: event.transaction):
            group = list(members)
            stays = [
                event
                for event in group
                if verdicts[event] in (WANT, WITH) or (verdicts[event] == HIDE and event.is_boundary)
            ]
            is_wanted = shown or any(verdicts[event] == WANT for event in group)
            last = len(stays)
            if transaction == self.transaction:
                # What only means something with what comes after it waits for that.
                last = max((i for i, event in enumerate(stays, 1) if is_wanted and not event.is_loose), default=0)
                self.shown, self.held = is_wanted, stays[last:]
            if is_wanted and last:
                kept += stays[:last]
            position_only |= {event.position for event in group if verdicts[event] in (HIDE, DROP) or not is_wanted}
            shown = False
        boundaries = [event for event in events if event.is_boundary]
        kept += [event for event in boundaries if event not in kept] if kept else boundaries[-1:]
        positions = sorted(event.position for event in kept)
        return Kept(positions, position_only & {*positions})

    def verdicts(self, events: Sequence[Event]) -> list[str]:
        verdicts = [self.verdict(event) for event in events]
        for i, event in enumerate(events):
            behind = list[str]()
            for later, verdict in zip(events[i + 1 :], verdicts[i + 1 :], strict=True):
                if event.role != "note" or later.role == "note" or later.transaction != event.transaction:
                    break
                behind += [verdict] if later.role in ROWS or later.role == "map" else []
            if behind and {*behind} == {DROP}:
                verdicts[i] = DROP
        return verdicts

    def verdict(self, event: Event) -> str:  # noqa: PLR0911 - one per role
        match event.role:
            case "insert" | "update" | "delete":
                return WANT if event.role in self.kinds and self.passes(event.tables[0]) else DROP
            case "map":
                return WITH if ROWS & self.kinds and self.passes(event.tables[0]) else DROP
            case "note":
                return WITH if "query" in self.kinds else DROP
            case "ddl" | "dcl" | "query":
                is_meant = not event.tables or any(map(self.passes, event.tables))
                return WANT if event.role in self.kinds and is_meant else DROP
            case "mark":
                return WITH if "transaction" in self.kinds else HIDE
            case "outcome":
                return WANT
            case _:
                return WITH
