"""Decides whether documents that look unequal really are: a change on its way to the index is not reported.

A document is read from the database, then from the index when that has all changes which the first read has seen, then
from the database again:

| database, first | index | database, then | verdict                                                          |
|-----------------|-------|----------------|------------------------------------------------------------------|
| A               | A     | any            | equal                                                            |
| A               | B     | B              | equal: the index was ahead                                       |
| A               | B     | C              | it changes: look again                                           |
| A               | B     | A              | suspect: a difference if the next rounds find the same A and B   |

A change between the two reads that was undone in between (A, B, A) is applied by the next round, which then finds
another version in the index.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from penstock.document.build import BuiltDocuments, DocumentBuilder
from penstock.document.difference import Difference, DifferenceKind, DocumentState, describe_difference
from penstock.document.document_id import document_id, parse_document_id
from penstock.document.rows import DocumentRows
from penstock.document.sql_text import Key
from penstock.document.write import TouchedDocument, write_built, write_operations
from penstock.errors import PenstockError
from penstock.model import LogRequirement, Position
from penstock.model import Sequence as ChangeSequence
from penstock.search.index import OPERATIONS, Rejection, SearchIndex

_ROUNDS_TO_BE_SURE = 3
_MOST_ROUNDS = 40
_LONG_ID = "%#"
_ROOTS_PER_PAGE = 2_000


class AppliedChanges(Protocol):
    """Knows how far the changes of the database have been applied to the index."""

    def source_end(self) -> Position:
        """Return where the log of the database ends now."""
        ...

    def find_requirement(self) -> LogRequirement | None:
        """Return what the database that is read must have executed: another one, or one that lags, is refused."""
        ...

    def wait_applied(self, position: Position) -> str:
        """Wait until the index has all changes before a position. Return an empty text, or why that did not happen in
        time."""
        ...


@dataclass(slots=True)
class SettledDocuments:
    """What is certain about documents that looked unequal."""

    differences: list[Difference] = field(default_factory=list[Difference])
    unsettled: list[str] = field(default_factory=list[str])
    reason: str = ""  # why some are not settled
    is_behind: bool = False  # the index has not got what the database has, and others would wait in vain, too


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A document that was found unequal in the same way in so many rounds."""

    source: DocumentState | None
    stored: tuple[DocumentState, ...]
    rounds: int


@dataclass(frozen=True, slots=True)
class _Read:
    """Documents as they were read from the database."""

    states: Mapping[str, DocumentState]
    failed: frozenset[str]  # ids of documents that the transform of the spec fails on


class DifferenceCheck:
    """Settles which of the documents that look unequal really are, and repairs them.

    check = DifferenceCheck(builder, rows, index, changes)
    settled = check.settle({"7": set(), "8": set()})
    """

    def __init__(
        self,
        builder: DocumentBuilder,
        rows: DocumentRows,
        index: SearchIndex,
        changes: AppliedChanges,
        *,
        keep_rejected: Callable[[Mapping[str, int], Sequence[Rejection]], object] = lambda _versions, _rejected: None,
        require_current: Callable[[], None] = lambda: None,
        explain: Callable[[str], str] = lambda _: "",
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        """Check documents of `builder` against `index`; `explain` says what is known about the document with an id,
        `keep_rejected` takes the versions of documents that were repaired and those that the index refused, and
        `require_current` raises an error when the tables are not those of the builder any more."""
        self._builder, self._rows, self._index, self._changes = builder, rows, index, changes
        self._keep_rejected, self._require_current = keep_rejected, require_current
        self._explain, self._pause = explain, pause
        self._long_ids: dict[str, Key] = {}  # ids that are checksums of their keys

    def require_source(self) -> None:
        """Let the database be read only if it has executed all that is in the captured log now."""
        self._rows.requirement = self._changes.find_requirement()

    def remember_long_ids(self, built: BuiltDocuments) -> None:
        """Remember the keys of documents whose ids do not tell them."""
        self._long_ids |= {
            name: key for name, key in zip(built.ids, built.keys, strict=True) if name.startswith(_LONG_ID)
        }

    def settle(self, stored_routings: Mapping[str, set[str | None]]) -> SettledDocuments:
        """Return which of these documents differ, and which change so often that nobody can say. Each is given with the
        routings by which the index has it, as far as they are known."""
        settled = SettledDocuments()
        suspects: dict[str, _Suspect | None] = dict.fromkeys(stored_routings)
        routings = {name: {None, *known} for name, known in stored_routings.items()}
        if any(name.startswith(_LONG_ID) and name not in self._long_ids for name in stored_routings):
            for built in self._builder.build_pages(_ROOTS_PER_PAGE):  # rows that have come meanwhile may have such ids
                self.remember_long_ids(built)
        for number in range(_MOST_ROUNDS):
            if number:
                self._pause(min(0.05 * number, 1.0))
            if reason := self._look_again(suspects, routings, settled):
                settled.reason, settled.is_behind = reason, True
                break
            if not suspects:
                break
        if settled.differences:
            self._require_current()
        settled.unsettled = list(suspects)
        if suspects and not settled.reason:
            settled.reason = "they changed all the time"
        return settled

    def _look_again(
        self,
        suspects: dict[str, "_Suspect | None"],
        routings: Mapping[str, set[str | None]],
        settled: SettledDocuments,
    ) -> str:
        """Read suspects once more from both sides, and remove those about which all is certain. Return why that is not
        possible, or an empty text."""
        first = self._read(list(suspects))
        if reason := self._changes.wait_applied(self._changes.source_end()):
            return reason
        for name, state in first.states.items():
            routings[name].add(state.routing)
        stored = self._read_stored({name: routings[name] for name in suspects})
        then = self._read(list(suspects))
        for name in list(suspects):
            suspect = _judge(suspects[name], first, stored.get(name, ()), then, name)
            suspects[name] = suspect
            if suspect is None or name in then.failed:
                del suspects[name]
            elif suspect.rounds >= _ROUNDS_TO_BE_SURE:
                del suspects[name]
                settled.differences.append(self._describe(name, suspect))
        return ""

    def repair(self, differences: Sequence[Difference]) -> int:
        """Write documents as the database has them now, deletes included, and return how many are equal then. A newer
        version in the index stays: its change came after this read."""
        self._require_current()
        names = [difference.id for difference in differences]
        routings = {difference.id: difference.routings for difference in differences}
        self.require_source()
        version = int(ChangeSequence.from_position(self._changes.source_end()))
        self._index.claim_epoch(ChangeSequence.from_int(version).epoch)
        keys = {name: key for name in names if (key := self.find_key(name)) is not None}
        with self._rows.open_view():
            built = self._builder.build_documents(list(keys.values()))
        touched = [TouchedDocument(key, version, routings[name]) for name, key in keys.items()]
        counts = write_built(self._index, touched, built)
        foreign = [(name, routing) for name in names if name not in keys for routing in routings[name]]
        counts.add(write_operations(self._index, _deletes(foreign, version)))
        self._keep_rejected(dict.fromkeys(keys, version), counts.rejected)
        self._index.refresh()
        again = self.settle({name: set(routings[name]) for name in names})
        return len(names) - len(again.differences) - len(again.unsettled)

    def _read(self, names: Sequence[str]) -> _Read:
        """Read documents from the database."""
        asked = set(names)
        keys = [key for name in names if (key := self.find_key(name)) is not None]
        self.require_source()
        with self._rows.open_view():
            built = self._builder.build_documents(keys)
        texts = built.documents.to_pylist()
        routings = built.routings or [None] * len(built)
        states = {
            name: DocumentState(text, routing)
            for name, text, routing in zip(built.ids, texts, routings, strict=True)
            if text is not None and name in asked  # a key may equal another one to the server, and not be the same
        }
        return _Read(states, frozenset(built.ids[row] for row in built.failures))

    def _read_stored(self, routings: Mapping[str, set[str | None]]) -> dict[str, tuple[DocumentState, ...]]:
        """Read documents from the index, as last written; one id may have several, by different routings."""
        wanted = [(name, routing) for name, some in routings.items() for routing in sorted(some, key=str)]
        table = self._index.read_documents(wanted)
        states: dict[str, set[DocumentState]] = {}
        columns = (table.column(name).to_pylist() for name in ("id", "document", "routing", "version"))
        for name, text, routing, version in zip(*columns, strict=True):
            states.setdefault(name, set()).add(DocumentState(text, routing, version))
        return {name: tuple(sorted(some, key=repr)) for name, some in states.items()}

    def find_key(self, name: str) -> Key | None:
        """Return the key of the document with an id; None where no row can have such a document."""
        if name in self._long_ids:
            return self._long_ids[name]
        try:
            key = parse_document_id(name, self._builder.graph.root.key)
        except (ValueError, ArithmeticError, PenstockError):
            return None
        return key if key is not None and document_id(key) == name else None  # 007 is no id of ours

    def _describe(self, name: str, suspect: _Suspect) -> Difference:
        """Return a difference that is certain."""
        source, stored = suspect.source, suspect.stored
        version = max((state.version for state in stored), default=None)
        routings = tuple(state.routing for state in stored)
        if source is None:
            kind, detail = DifferenceKind.EXTRA, "no row has it"
        elif not stored:
            kind, detail = DifferenceKind.MISSING, "the index does not have it"
        else:
            other = next((state for state in stored if not state.equals(source)), stored[0])
            kind, detail = DifferenceKind.STALE, describe_difference(source, other)
        return Difference(name, kind, detail, version, self._explain(name), routings)


def _judge(
    suspect: _Suspect | None, first: _Read, stored: tuple[DocumentState, ...], then: _Read, name: str
) -> _Suspect | None:
    """Return what is suspected of a document after another round; None if it is equal."""
    before, after = first.states.get(name), then.states.get(name)
    if _is_stored(before, stored) or _is_stored(after, stored):
        return None
    if before != after:
        return _Suspect(after, stored, 0)
    is_same = suspect is not None and suspect.source == after and suspect.stored == stored
    return _Suspect(after, stored, suspect.rounds + 1 if suspect is not None and is_same else 1)


def _is_stored(source: DocumentState | None, stored: tuple[DocumentState, ...]) -> bool:
    """Return whether the index has exactly what the database has."""
    if source is None:
        return not stored
    return len(stored) == 1 and stored[0].equals(source)


def _deletes(documents: Sequence[tuple[str, str | None]], version: int) -> pa.Table:
    """Return the operations that delete documents."""
    columns = {
        "id": pa.array([name for name, _ in documents], pa.string()),
        "version": pa.array([version] * len(documents), pa.int64()),
        "document": pa.nulls(len(documents), pa.string()),
        "routing": pa.array([routing for _, routing in documents], pa.string()),
    }
    return pa.table([columns[part.name] for part in OPERATIONS], schema=OPERATIONS)
