"""One pass over the log that is still there, newest file first, for the changes of some documents."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.client import ServerAddress
from penstock.document.difference import Difference
from penstock.document.difference_cause import DifferenceCause, ExaminedLog, HistoryReader, find_cause
from penstock.document.graph import DocumentGraph
from penstock.document.rows import DocumentRows
from penstock.document.sql_text import Key
from penstock.errors import PositionLostError
from penstock.model import Position
from penstock.model import Sequence as ChangeSequence
from penstock.spark.change_log import ChangeLog
from penstock.spark.driver_read import DriverReader
from penstock.spark.index_sync import BYTES_PER_BATCH, table_filter
from penstock.spark.options import ReadOptions

_FILE_START = 4


@dataclass(frozen=True, slots=True)
class PassLimits:
    """The limits of a pass over the log."""

    max_bytes: int = 1 << 30
    max_s: float = 60.0


class LogHistory:
    """Finds why documents differ, by the log of a server.

    history = LogHistory(ServerAddress("127.0.0.1:11115"), "default", graph, rows)
    causes = history.find_causes(differences, {"7": (7,)})
    """

    def __init__(
        self,
        server: ServerAddress,
        destination: str,
        graph: DocumentGraph,
        rows: DocumentRows,
        *,
        limits: PassLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        options = ReadOptions.of(
            {
                "server": server.server,
                "token": server.token,
                "tlsCa": server.tls_ca,
                "destination": destination,
                "filter": table_filter(sorted(graph.tables)),
                "maxBytesPerTrigger": str(BYTES_PER_BATCH),
            }
        )
        self._log, self._reader = ChangeLog(options), DriverReader(options)
        self._graph, self._rows = graph, rows
        self._limits, self._clock = limits or PassLimits(), clock

    def find_causes(
        self, differences: Sequence[Difference], keys: Mapping[str, Key | None]
    ) -> Iterator[DifferenceCause]:
        """Yield why documents differ, whose keys are given by id; None for ids that no row can have."""
        documents = {part.id: (keys.get(part.id), part.version) for part in differences}
        histories = HistoryReader(self._graph, self._rows, documents)
        looked_at = self._read(histories)
        for difference in differences:
            yield find_cause(difference, histories.documents[difference.id], looked_at)

    def _read(self, histories: HistoryReader) -> ExaminedLog:
        """Read the log from its newest file on, until all is known or a limit is reached. Return what was read."""
        end, deadline = self._log.source_end(), self._clock() + self._limits.max_s
        oldest = self._log.client.source_start()
        start, size = end, 0
        while start > oldest and not _is_known(histories, start):
            file = _find_file(start, oldest)
            try:
                for position, following in self._plan(file, start):
                    if size > self._limits.max_bytes or self._clock() > deadline:
                        return ExaminedLog(start, end, is_whole=False)
                    changes = self._reader.read_range(position, following, histories.used_columns)
                    # A range that ends with its file ends at the begin of the next one: what was read is counted.
                    is_in_one = position.file == following.file
                    size += following.offset - position.offset if is_in_one else changes.nbytes
                    histories.add_changes(changes)
            except PositionLostError:  # it was purged meanwhile
                return ExaminedLog(start, end, is_whole=True)
            start = file
        return ExaminedLog(start, end, is_whole=start <= oldest)

    def _plan(self, start: Position, end: Position) -> Iterator[tuple[Position, Position]]:
        """Yield the ranges in which a part of the log is read."""
        while start < end:
            following = self._log.end_before(start, end)
            yield start, following
            start = following


def _find_file(position: Position, oldest: Position) -> Position:
    """Return the begin of the log file before a position, or of that which it is in the middle of."""
    prefix, _, digits = position.file.rpartition(".")
    number = position.file_number - (position.offset <= _FILE_START)
    file = Position(f"{prefix}.{number:0{len(digits)}}", _FILE_START, epoch=position.epoch)
    return max(file, oldest)


def _is_known(histories: HistoryReader, start: Position) -> bool:
    """Return whether nothing before a position would tell anything new."""
    sequence = int(ChangeSequence.from_position(start))
    return all(
        part.newest is not None if part.version is None else part.version >= sequence
        for part in histories.documents.values()
    )
