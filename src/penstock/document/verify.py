"""The proof that an index equals the database, while both change.

All documents of both sides are compared by digests, in whatever order they come. Those that are not equal are looked at
again one by one until it is certain: a change that is on its way from the log to the index is no difference.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.document.build import BuiltDocuments, DocumentBuilder
from penstock.document.difference import Difference, DifferenceKind
from penstock.document.difference_check import DifferenceCheck
from penstock.document.document_sample import DocumentSample
from penstock.document.key_range import KeyRange
from penstock.render.digest_spool import DigestSpool, count_parts, digest_documents, find_unequal
from penstock.search.index import SearchIndex
from penstock.snapshot.pacing import Pacer

log = logging.getLogger(__name__)

ROOTS_PER_PAGE = 2_000
_FEW = 0.25  # of the index: the ids are read first, and then the documents of these alone
IDS_PER_CHECK = 500
_LEAST_SAMPLED = 100  # documents that a sample should have, of which there is none: it proves nothing


@dataclass(slots=True)
class VerifyResult:
    """What a comparison of an index with its database found."""

    documents: int = 0  # of the database
    indexed: int = 0  # of the index
    checked: int = 0  # of both, looked at one by one, because their digests were not equal
    differences: list[Difference] = field(default_factory=list[Difference])
    counts: dict[str, int] = field(default_factory=lambda: {kind.value: 0 for kind in DifferenceKind})
    unsettled: int = 0  # changed all the time, or wait for a change that sync has not applied
    unsettled_reason: str = ""
    repaired: int = 0
    unrepaired: int = 0
    unexplained: int = 0  # differences for which no reason is known
    first_unexplained: Difference | None = None
    share: float = 1.0  # of the documents that were compared, in both directions

    @property
    def is_equal(self) -> bool:
        """Return whether the index is proved to be equal to the database."""
        return not self.unsettled and not any(self.counts.values())


@dataclass(frozen=True, slots=True)
class VerifyProgress:
    """The number of documents that were read from both sides so far, of about twice as many as the index has."""

    done: int
    total: int


class IndexVerifier:
    """Compares all documents of an index with the database.

    verifier = IndexVerifier(builder, index, DifferenceCheck(builder, rows, index, changes))
    result = verifier.run()
    """

    MOST_LISTED = 10_000

    def __init__(
        self,
        builder: DocumentBuilder,
        index: SearchIndex,
        check: DifferenceCheck,
        stopped: threading.Event | None = None,
        *,
        keys: KeyRange | None = None,
        sample: DocumentSample | None = None,
        documents_per_s: float | None = None,
        estimated_documents: int = 0,
        progress: Callable[[VerifyProgress], None] = lambda _: None,
        on_difference: Callable[[Difference], None] = lambda _: None,
    ) -> None:
        """Compare the documents that `builder` reads with those of `index`; `check` decides about the unequal ones.
        When `stopped` is set, the result is that of a part. `keys` limits the comparison to a range, `sample` to a
        share of the documents, and `documents_per_s` the rate at which either side is read; `estimated_documents` are
        those of the database."""
        self._builder, self._index, self._check = builder, index, check
        self._progress, self._on_difference = progress, on_difference
        self._keys, self._sample = keys, sample
        self._documents_per_s, self._estimated = documents_per_s, estimated_documents
        self._stopped = stopped or threading.Event()
        self._lock = threading.Lock()
        self._done = 0  # by _lock
        self._is_behind = False  # what is unequal from now on would wait in vain

    def run(self, *, repair: bool = False) -> VerifyResult:
        """Compare everything, and with `repair` write what differs as the database has it."""
        result, self._done, self._is_behind = VerifyResult(share=self._share), 0, False
        self._check.require_source()
        total = self._index.count()
        with ExitStack() as opened:
            source, stored = (
                opened.enter_context(DigestSpool(count_parts(max(total, self._estimated)))) for _ in range(2)
            )
            pool = opened.enter_context(ThreadPoolExecutor(2, "verify"))
            failed = threading.Event()
            sides = [
                pool.submit(self._spool, self._digest_source(), source, int(2 * total * self._share), failed),
                pool.submit(self._spool, self._digest_index(), stored, int(2 * total * self._share), failed),
            ]
            for side in sides:
                side.result()
            result.documents, result.indexed = source.rows, stored.rows
            for routings in () if self._stopped.is_set() else find_unequal(source, stored):
                names = list(routings)
                for first in range(0, len(names), IDS_PER_CHECK):
                    some = {name: routings[name] for name in names[first : first + IDS_PER_CHECK]}
                    self._settle(some, result, repair=repair)
        is_empty = not result.documents and not result.indexed and not self._stopped.is_set()
        if is_empty and self._keys is None and self._share < 1 and total * self._share >= _LEAST_SAMPLED:
            result.unsettled, result.unsettled_reason = 1, "no document belongs to the sample: choose a larger share"
        log.info(
            "index verified index=%s documents=%d indexed=%d missing=%d stale=%d extra=%d unsettled=%d repaired=%d",
            *(self._builder.graph.spec.index, result.documents, result.indexed, *result.counts.values()),
            *(result.unsettled, result.repaired),
        )
        return result

    def _spool(self, tables: Iterator[pa.Table], spool: DigestSpool, total: int, failed: threading.Event) -> None:
        """Spool the digests of one side, until the other one fails or the comparison is stopped."""
        pacer = Pacer(self._documents_per_s, sleep=self._stopped.wait)
        try:
            for table in tables:
                pacer.wait_for(table.num_rows)
                if failed.is_set() or self._stopped.is_set():
                    return
                spool.add(table)
                with self._lock:
                    self._done += table.num_rows
                    self._progress(VerifyProgress(self._done, max(total, self._done)))
        except BaseException:
            failed.set()
            raise

    def _digest_source(self) -> Iterator[pa.Table]:
        """Yield the digests of the database's documents."""
        for condition in self._source_conditions():
            for built in self._builder.build_pages(ROOTS_PER_PAGE, condition):
                self._check.remember_long_ids(built)
                digests = _digest_built(built)
                if self._sample is not None:
                    digests = digests.filter(pa.array(self._sample.choose(digests.column("id").combine_chunks())))
                yield digests

    @property
    def _share(self) -> float:
        """Return which share of the documents is compared."""
        return 1.0 if self._sample is None else self._sample.sample.share

    def _source_conditions(self) -> Iterator[str]:
        """Yield the SQL conditions of the root rows that are read, one after the other."""
        if self._sample is not None:
            yield from self._sample.conditions(self._keys)
        else:
            yield "" if self._keys is None else self._keys.condition

    def _digest_index(self) -> Iterator[pa.Table]:
        """Yield the digests of the index's documents."""
        for page in self._scan_index():
            if page.num_rows:
                columns = (page.column(name).combine_chunks() for name in ("id", "document", "routing"))
                yield digest_documents(*columns)

    def _scan_index(self) -> Iterator[pa.Table]:
        """Yield the documents of the index that are compared. Of a small sample the ids are read first, and then these
        documents alone."""
        if self._share > _FEW:
            yield from map(self._choose, self._index.scan_documents())
            return
        for page in map(self._choose, self._index.scan_ids()):
            wanted = list(zip(page.column("id").to_pylist(), page.column("routing").to_pylist(), strict=True))
            for first in range(0, len(wanted), IDS_PER_CHECK):
                yield self._choose(self._index.read_documents(wanted[first : first + IDS_PER_CHECK]))

    def _choose(self, page: pa.Table) -> pa.Table:
        """Return the documents of a page that are compared."""
        if self._keys is not None:
            mask = [self._keys.has_id(name) for name in page.column("id").to_pylist()]
            page = page.filter(pa.array(mask, pa.bool_()))
        if self._sample is not None and page.num_rows:
            page = page.filter(pa.array(self._sample.choose(page.column("id").combine_chunks())))
        return page

    def _settle(self, routings: Mapping[str, set[str | None]], result: VerifyResult, *, repair: bool) -> None:
        """Look at documents one by one, and add what is found to the result."""
        if self._is_behind:
            result.unsettled += len(routings)
            return
        result.checked += len(routings)
        settled = self._check.settle(routings)
        for difference in settled.differences:
            result.counts[difference.kind] += 1
            if not difference.reason:
                result.unexplained += 1
                result.first_unexplained = result.first_unexplained or difference
            if len(result.differences) < self.MOST_LISTED:
                result.differences.append(difference)
            self._on_difference(difference)
        self._is_behind = settled.is_behind
        result.unsettled += len(settled.unsettled)
        result.unsettled_reason = settled.reason or result.unsettled_reason
        if repair and settled.differences:
            repaired = self._check.repair(settled.differences)
            result.repaired += repaired
            result.unrepaired += len(settled.differences) - repaired


def _digest_built(built: BuiltDocuments) -> pa.Table:
    """Return the digests of documents that were built; of those that a transform leaves out, none."""
    routings = built.routings or [None] * len(built)
    ids, routing_texts = pa.array(built.ids, pa.string()), pa.array(routings, pa.string())
    return digest_documents(ids, built.documents, routing_texts).filter(built.documents.is_valid())
