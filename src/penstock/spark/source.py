"""`spark.readStream.format("penstock")`: changes of tables as a typed stream.

Offsets are log positions {epoch, file, offset}; a batch is a range of the log and can be read again at any time. Where
a query begins is not in its checkpoint before its first batch is done, and "latest" is another place each time: so that
a crash then loses nothing, the first batch of such a query is empty.

The reader that plans lives in one driver-side process; what reads travels to the executors, so everything it needs is
in itself or in its partition.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyspark.sql.datasource as spark
from pyspark.sql.types import StructType

from penstock.client import Address, FlightClient
from penstock.model import Position
from penstock.spark.layout import StreamLayout
from penstock.spark.options import ReadOptions
from penstock.spark.types import spark_schema

_HAS_READ_LIMITS = hasattr(spark, "ReadLimit")  # pyspark 4.2 and later


_PATIENCE_S = 120.0  # a server that restarts is waited for


@lru_cache(maxsize=16)
def shared_client(server: Address, destination: str) -> FlightClient:
    """One per process: Spark's workers are reused from batch to batch."""
    return FlightClient(server, destination, patience_s=_PATIENCE_S)


class PenstockDataSource(spark.DataSource):
    """Spark builds this in several processes; it must stay cheap and picklable."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._read = ReadOptions.of(options)

    @classmethod
    def name(cls) -> str:
        return "penstock"

    def schema(self) -> StructType:
        return spark_schema(self._layout().schema)

    def streamReader(self, schema: StructType) -> "PenstockStreamReader":  # noqa: N802, ARG002 - Spark's names
        return reader_class(self._read, self._layout())

    def _layout(self) -> StreamLayout:
        with closing(FlightClient(self._read.server, self._read.destination)) as client:
            return StreamLayout.ask(self._read, client)


@dataclass
class LogPart(spark.InputPartition):
    """One part of a range of the log, as the server named it."""

    ticket: bytes


class PenstockStreamReader(spark.DataSourceStreamReader):
    def __init__(self, options: ReadOptions, layout: StreamLayout) -> None:
        self._options = options
        self._layout = layout
        self._end: Position | None = None  # of Trigger.AvailableNow: no batch goes past it
        self._first: Position | None = None  # where the first batch begins and ends

    # -- in the driver-side process

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        match self._options.starting_position:
            case "latest":
                self._first = self._client.bounds()["latest"]
                return self._first.to_json()
            case "earliest":
                return self._client.oldest().to_json()
            case text:
                return Position.parse(text, self._client.bounds()["latest"].epoch).to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[LogPart]:
        first, last = Position.from_json(start), Position.from_json(end)
        if self._options.starting_position == "latest":
            first = min(first, last)  # the first batch once more: it begins where it ends
        tickets = self._client.parts(self._options.tables, first, last)
        return [LogPart(ticket) for ticket in tickets]

    def commit(self, end: dict[str, Any]) -> None:
        self._client.ack(Position.from_json(end))

    def _next(self, start: Position) -> Position:
        """Wait a moment for news: cheaper and faster than Spark's own polling."""
        if start == self._first or (self._end is not None and start >= self._end):
            self._first = None
            return start
        end = self._client.latest(start, self._options.max_bytes, self._options.poll_ms)
        return end if self._end is None else min(end, self._end)

    @property
    def _client(self) -> FlightClient:
        return shared_client(self._options.server, self._options.destination)

    # -- on the executors

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        for block in self._client.read(partition.ticket):
            yield from self._layout.batches(block)


if _HAS_READ_LIMITS:
    from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

    class _LimitedReader(PenstockStreamReader, SupportsTriggerAvailableNow):
        """pyspark 4.2 and later: Spark says where it stands, and asks for one batch at a time."""

        def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
            return ReadMaxBytes(self._options.max_bytes)

        def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802, ARG002
            return self._next(Position.from_json(start)).to_json()

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
            self._end = self._client.bounds()["latest"]

    reader_class: type[PenstockStreamReader] = _LimitedReader
else:

    class _PlainReader(PenstockStreamReader):
        """pyspark 4.1: Spark only asks for the newest position."""

        _last: Position | None = None

        def latestOffset(self) -> dict[str, Any]:  # noqa: N802  # pyright: ignore[reportIncompatibleMethodOverride]
            if self._last is None:
                self._last = self._first or self._client.bounds()["latest"]
            else:
                self._last = self._next(self._last)
            return self._last.to_json()

    reader_class = _PlainReader
