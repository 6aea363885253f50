"""What becomes of documents that an index refuses: they are kept as dead letters, up to the point where nearly all are.

One document that an index refuses never stops the others. When most are refused, the mapping or the spec is wrong, and
writing on would only fill the dead letters.
"""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from penstock.document.graph import REFERENCES_FIELD
from penstock.errors import MissingExtraError, SinkRejectedError
from penstock.model import Sequence as ChangeSequence
from penstock.search.dead_letters import DeadLetters
from penstock.search.index import Rejection

try:
    import orjson
except ImportError as error:
    raise MissingExtraError.for_extra("search", "building documents") from error

log = logging.getLogger(__name__)

MOST_REJECTED = 0.5  # of the last documents
LEAST_REJECTED = 100  # before that share counts
_RECENT = 2_000
_LETTERS_PER_PAGE = 500


class OutcomeLog(Protocol):
    """Takes what became of documents."""

    def record(self, versions: Mapping[str, int], rejected: Sequence[Rejection]) -> None:
        """Take the ids of documents that were written, with their versions, and those of them that were refused."""
        ...

    def record_range(self, documents: int, rejected: Sequence[Rejection]) -> None:
        """Take how many documents of a range were written, and those of them that were refused."""
        ...

    def find_referring(self, references: Collection[str]) -> Iterator[tuple[str, str | None]]:
        """Yield the ids and routings of refused documents that name one of these rows, on which they depend by foreign
        keys that cascade."""
        ...

    def record_rebuild(self, version: int) -> None:
        """Take it that all documents were written, refused or deleted with a version: what is older is superseded."""
        ...


class StrictOutcome:
    """An OutcomeLog that keeps nothing: the first document that is refused is an error."""

    def record(self, versions: Mapping[str, int], rejected: Sequence[Rejection]) -> None:  # noqa: ARG002 - as agreed
        """Raise SinkRejectedError if a document was refused."""
        if rejected:
            raise SinkRejectedError(
                f"the index refused {len(rejected)} documents, the first with id {rejected[0].id}:"
                f" {rejected[0].reason}; nothing after them was acknowledged, correct the mapping, the transform or the"
                " data and start again"
            )

    def record_range(self, documents: int, rejected: Sequence[Rejection]) -> None:  # noqa: ARG002 - as agreed
        """Raise SinkRejectedError if a document was refused."""
        self.record({}, rejected)

    def find_referring(self, references: Collection[str]) -> Iterator[tuple[str, str | None]]:  # noqa: ARG002 - as agreed
        """Yield nothing: nothing was refused."""
        return iter(())

    def record_rebuild(self, version: int) -> None:
        """Do nothing: nothing was refused."""


class DeadLetterOutcome:
    """An OutcomeLog that keeps refused documents as dead letters, and forgets those that were written since.

    outcome = DeadLetterOutcome("product", letters)
    """

    def __init__(self, index: str, letters: DeadLetters, most_rejected: float = MOST_REJECTED) -> None:
        self._index, self._letters, self._most_rejected = index, letters, most_rejected
        self._documents = 0  # recent ones that were written
        self._rejected: dict[str, None] = {}  # ids of recent ones that were refused, the last one last

    def record(self, versions: Mapping[str, int], rejected: Sequence[Rejection]) -> None:
        """Keep refused documents durably; raise SinkRejectedError when nearly all recent ones were refused."""
        if rejected or self._letters.count(self._index):
            refused = {(item.id, item.version) for item in rejected}
            written = {name: version for name, version in versions.items() if (name, version) not in refused}
            self._letters.forget_superseded(self._index, written)
        self.record_range(len(versions), rejected)

    def record_range(self, documents: int, rejected: Sequence[Rejection]) -> None:
        """Keep refused documents durably, of so many that were written. Older dead letters of the others are forgotten
        when all ranges are done, by `record_rebuild`."""
        by_version: dict[int, list[Rejection]] = {}
        for item in rejected:
            by_version.setdefault(item.version, []).append(item)
        for version, items in by_version.items():
            self._letters.add(self._index, items, _describe_position(version))
        if rejected:
            log.warning(
                "documents refused and kept as dead letters index=%s count=%d first_id=%s reason=%s",
                *(self._index, len(rejected), rejected[0].id, rejected[0].reason),
            )
        self._check_share(documents, rejected)

    def find_referring(self, references: Collection[str]) -> Iterator[tuple[str, str | None]]:
        """Yield the refused documents that name one of these rows. The index has not got them, or not in this state."""
        wanted, after = set(references), 0
        while wanted and (page := self._letters.read_page(after, _LETTERS_PER_PAGE, self._index)):
            after = page[-1].number
            for letter in page:
                if letter.document is None or REFERENCES_FIELD not in letter.document:
                    continue
                names = orjson.loads(letter.document).get(REFERENCES_FIELD)
                if isinstance(names, list) and not wanted.isdisjoint(names):  # pyright: ignore[reportUnknownArgumentType]
                    yield letter.id, letter.routing

    def record_rebuild(self, version: int) -> None:
        """Forget the dead letters from before a rebuild: of documents that are gone, nothing else would do so."""
        self._letters.forget_before(self._index, version)

    def _check_share(self, documents: int, rejected: Sequence[Rejection]) -> None:
        """Raise when too many of the recent documents were refused."""
        self._documents += documents - len(rejected)
        for item in rejected:
            self._rejected.pop(item.id, None)
            self._rejected[item.id] = None
        count = len(self._rejected)
        if rejected and count >= LEAST_REJECTED and count > self._most_rejected * (self._documents + count):
            raise SinkRejectedError(
                f"index '{self._index}' refuses nearly everything: {count} of the last {self._documents + count}"
                f" documents, the last one with id {rejected[-1].id}: {rejected[-1].reason}; correct the mapping, the"
                " spec or its transform, and start again. They are in the dead letters"
            )
        if self._documents + count > _RECENT:
            self._documents //= 2
            self._rejected = dict.fromkeys(list(self._rejected)[count // 2 :])


def _describe_position(version: int) -> str:
    """Return where in the log the change is that gave a document its version."""
    sequence = ChangeSequence.from_int(version)
    return f"log file {sequence.file_number}, offset {sequence.offset}, epoch {sequence.epoch}"
