"""Another attempt to write dead letters.

Invariant: each dead letter is written with its own version, so a document that the index has in a newer state stays as
it is, and the dead letter counts as delivered. A document from before the transform of its spec is never written
without it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.errors import ConfigurationError, TransformError
from penstock.search.dead_letters import DeadLetter, DeadLetters
from penstock.search.index import OPERATIONS, SearchIndex, WriteReport

_PAGE = 500
# Returns the document to index instead of one from before the transform of its spec, or None to delete it; raises
# TransformError.
TransformText = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class RetryReport:
    """What became of the dead letters of a retry."""

    written: int = 0
    """Documents written and deletes applied."""
    stale: int = 0
    """Letters whose document the index has in a newer version."""
    refused: tuple[tuple[DeadLetter, str], ...] = ()
    """Letters that were refused again, with the reason."""

    def __add__(self, other: "RetryReport") -> "RetryReport":
        return RetryReport(self.written + other.written, self.stale + other.stale, (*self.refused, *other.refused))


def retry_letters(
    letters: DeadLetters, index: SearchIndex, chosen: Iterable[DeadLetter], transform: TransformText | None = None
) -> RetryReport:
    """Write dead letters of one index again. What is taken is removed; what is refused stays and counts one more
    attempt. Dead letters from before the transform of their spec need it, else ConfigurationError."""
    report = RetryReport()
    page: list[DeadLetter] = []
    for letter in chosen:
        page.append(letter)
        if len(page) == _PAGE:
            report += _retry_page(letters, index, page, transform)
            page = []
    return report + _retry_page(letters, index, page, transform) if page else report


def read_letters(letters: DeadLetters, index: str | None = None) -> Iterator[DeadLetter]:
    """Yield all dead letters that are there now, in the order of their numbers, page by page."""
    after, last = 0, letters.newest_number()
    while page := letters.read_page(after, _PAGE, index):
        for letter in page:
            if letter.number > last:
                return
            yield letter
        after = page[-1].number


def _retry_page(
    letters: DeadLetters, index: SearchIndex, page: Sequence[DeadLetter], transform: TransformText | None
) -> RetryReport:
    """Write some dead letters in one batch, and record what became of each."""
    documents, failed = _transform_page(page, transform)
    ready = [letter for letter in page if letter.number in documents]
    columns = [
        pa.array([letter.id for letter in ready], pa.string()),
        pa.array([letter.version for letter in ready], pa.int64()),
        pa.array([documents[letter.number] for letter in ready], pa.string()),
        pa.array([letter.routing for letter in ready], pa.string()),
    ]
    report = index.write(pa.Table.from_arrays(columns, schema=OPERATIONS)) if ready else WriteReport()
    reasons = {(item.id, item.routing): item.reason for item in report.rejected}
    refused = [
        (letter, reasons[letter.id, letter.routing]) for letter in ready if (letter.id, letter.routing) in reasons
    ]
    letters.settle([letter for letter in ready if (letter.id, letter.routing) not in reasons], [*refused, *failed])
    return RetryReport(report.written + report.deleted, report.stale, (*refused, *failed))


def _transform_page(
    page: Sequence[DeadLetter], transform: TransformText | None
) -> tuple[dict[int, str | None], list[tuple[DeadLetter, str]]]:
    """Return the documents to write by the numbers of their letters, and the letters whose transform failed."""
    documents: dict[int, str | None] = {}
    failed: list[tuple[DeadLetter, str]] = []
    for letter in page:
        documents[letter.number] = text = letter.document
        if not letter.before_transform or text is None:
            continue
        if transform is None:
            raise ConfigurationError(
                f"dead letter {letter.number} of index '{letter.index}' has its document as it was before the"
                " transform of its spec: name the spec, which has the transform, with --spec"
            )
        try:
            documents[letter.number] = transform(text)
        except TransformError as error:
            del documents[letter.number]
            failed.append((letter, str(error)))
    return documents, failed
