"""The proof that a mirror equals its table, while both change.

All rows of both sides are compared by digests, in whatever order they come. Those that are not equal are looked at
again until it is certain: a change that is on its way to the mirror is no difference.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.errors import MirrorChangedError
from penstock.mirror.comparison import RowComparison
from penstock.mirror.database_table import DatabaseTable
from penstock.mirror.row_check import Mirror, RowCheck, RowDifference
from penstock.mirror.selection import RowSelection
from penstock.model.difference_kind import DifferenceKind
from penstock.render.digest_spool import DigestSpool, count_parts, find_unequal
from penstock.snapshot.pacing import Pacer

log = logging.getLogger(__name__)

_IDS_PER_CHECK = 20_000
_LEAST_SAMPLED = 100  # rows that a sample should have, of which there is none: it proves nothing
_SCANS = 5  # of a mirror whose files are replaced meanwhile


@dataclass(slots=True)
class MirrorResult:
    """What a comparison of a mirror with its table found."""

    rows: int = 0  # of the table
    mirrored: int = 0  # rows of the mirror
    checked: int = 0  # of both, read again, because their digests were not equal
    differences: list[RowDifference] = field(default_factory=list[RowDifference])
    counts: dict[str, int] = field(default_factory=lambda: {kind.value: 0 for kind in DifferenceKind})
    unsettled: int = 0  # changed all the time, or wait for a change that has not reached the mirror
    unsettled_reason: str = ""
    share: float = 1.0  # of the rows that were compared

    @property
    def is_equal(self) -> bool:
        """Return whether the mirror is proved to be equal to the table."""
        return not self.unsettled and not any(self.counts.values())


class TableVerifier:
    """Compares all rows of a mirror with its table.

    verifier = TableVerifier(comparison, source, mirror, RowCheck(comparison, source, mirror, progress))
    result = verifier.run()
    """

    MOST_LISTED = 10_000

    def __init__(
        self,
        comparison: RowComparison,
        source: DatabaseTable,
        mirror: Mirror,
        check: RowCheck,
        stopped: threading.Event | None = None,
        *,
        selection: RowSelection | None = None,
        rows_per_s: float | None = None,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
        on_difference: Callable[[RowDifference], None] = lambda _: None,
    ) -> None:
        """Compare the rows of a selection; `rows_per_s` limits the rate at which the mirror is read, the options of
        `source` that of the table. When `stopped` is set, the result is that of a part. `progress` gets how many rows
        of both sides are read, and about how many there are."""
        self._comparison, self._source, self._mirror, self._check = comparison, source, mirror, check
        self._selection, self._rows_per_s = selection or RowSelection(), rows_per_s
        self._progress, self._on_difference = progress, on_difference
        self._stopped = stopped or threading.Event()
        self._lock = threading.Lock()
        self._done = 0  # by _lock

    def run(self) -> MirrorResult:
        """Compare all rows of the selection."""
        result, self._done = MirrorResult(share=self._selection.share), 0
        rows = max(self._source.estimate_rows(), self._mirror.estimate_rows())
        parts, total = count_parts(rows), int(2 * rows * self._selection.share)
        with ExitStack() as opened:
            pool = opened.enter_context(ThreadPoolExecutor(2, "verify"))
            failed = threading.Event()
            sides = [pool.submit(self._spool, self._source.scan, parts, total, failed, opened)]
            sides.append(pool.submit(self._spool_mirror, parts, total, failed, opened))
            wait(sides)  # both: their files are removed when one of them has failed
            source, mirrored = (side.result() for side in sides)
            result.rows, result.mirrored = source.rows, mirrored.rows
            is_behind = False
            for ids in () if self._stopped.is_set() else find_unequal(source, mirrored):
                names = list(ids)
                for first in range(0, len(names), _IDS_PER_CHECK):
                    some = names[first : first + _IDS_PER_CHECK]
                    if is_behind or self._stopped.is_set():
                        result.unsettled += len(some)
                    else:
                        is_behind = self._settle(some, result)
        is_empty = not result.rows and not result.mirrored and not self._stopped.is_set()
        if is_empty and self._selection.keys is None and result.share < 1 and rows * result.share >= _LEAST_SAMPLED:
            result.unsettled, result.unsettled_reason = 1, "no row belongs to the sample: choose a larger share"
        log.info(
            "mirror verified table=%s mirror=%s rows=%d mirrored=%d missing=%d stale=%d extra=%d unsettled=%d",
            *(self._source.table.name, self._mirror.description, result.rows, result.mirrored),
            *(*result.counts.values(), result.unsettled),
        )
        return result

    def _spool(
        self,
        scan: Callable[[RowComparison, RowSelection], Iterator[pa.RecordBatch]],
        parts: int,
        total: int,
        failed: threading.Event,
        opened: ExitStack,
        pacer: Pacer | None = None,
    ) -> DigestSpool:
        """Return the digests of one side, until the other one fails or the comparison is stopped."""
        spool = DigestSpool(parts)
        opened.callback(spool.close)
        try:
            for batch in scan(self._comparison, self._selection):
                if pacer is not None:
                    pacer.wait_for(batch.num_rows)
                if failed.is_set() or self._stopped.is_set():
                    break
                if batch.num_rows:
                    spool.add(self._comparison.digest_rows(batch))
                with self._lock:
                    self._done += batch.num_rows
                    self._progress(self._done, max(total, self._done))
        except MirrorChangedError:
            raise
        except BaseException:
            failed.set()
            raise
        return spool

    def _spool_mirror(self, parts: int, total: int, failed: threading.Event, opened: ExitStack) -> DigestSpool:
        """Return the digests of the mirror, which is read again when its files are replaced meanwhile."""
        pacer = Pacer(self._rows_per_s, sleep=self._stopped.wait)
        for _ in range(_SCANS - 1):
            try:
                return self._spool(self._mirror.scan, parts, total, failed, opened, pacer)
            except MirrorChangedError as error:
                log.warning("mirror is read again mirror=%s reason=%s", self._mirror.description, error)
        try:
            return self._spool(self._mirror.scan, parts, total, failed, opened, pacer)
        except MirrorChangedError:
            failed.set()
            raise

    def _settle(self, ids: list[str], result: MirrorResult) -> bool:
        """Look at rows again, and add what is certain to the result. Return whether others would wait in vain."""
        result.checked += len(ids)
        settled = self._check.settle(ids)
        for difference in settled.differences:
            result.counts[difference.kind] += 1
            if len(result.differences) < self.MOST_LISTED:
                result.differences.append(difference)
            self._on_difference(difference)
        result.unsettled += settled.unsettled
        result.unsettled_reason = settled.reason or result.unsettled_reason
        return settled.is_behind
