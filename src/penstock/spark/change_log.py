"""The log that a query reads, and the offsets that Spark keeps of it.

An offset is a position of the log with two marks: the tables it was made for, and the identity of the log file. A
checkpoint that is used for another table, or with another database server, is refused instead of read from anywhere.
"""

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from penstock.client import EmbeddedSource, FlightClient, ServerAddress
from penstock.client.flight import BatchEnd
from penstock.errors import (
    ConfigurationError,
    IncompatibleColumnError,
    PenstockError,
    PositionLostError,
    SchemaError,
    SourceConnectionError,
)
from penstock.model import Position, TableName
from penstock.model.start_point import Moment, parse_start
from penstock.spark.capture_progress import CaptureProgress
from penstock.spark.cursor_renewal import CursorRenewal
from penstock.spark.log_end_report import LogEndReport
from penstock.spark.options import ReadOptions
from penstock.spark.snapshot_state import Limit, PendingTable

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.binlog.events.block import Block
    from penstock.spark.layout import ChangeLayout, TableLayout

Offset = dict[str, Any]

_ALTERED_ADVICE = (
    "Start the query again with its checkpoint: it then has the new type, also for rows from before where that can hold"
    " them. If it stops at a row from before, begin behind the statement: with a new checkpoint, and startingPosition"
)
# Of several tables, blocks are decoded together up to this size: each table of each block costs as much as many rows.
_JOINED_BYTES = 8 << 20
_CLOCK_SKEW_S = 1.0  # what clocks of one site may differ


@lru_cache(maxsize=16)
def shared_client(server: ServerAddress | EmbeddedSource, destination: str, wait_s: float) -> FlightClient:
    """Return a client of this process: Spark's workers are reused from batch to batch."""
    return FlightClient(server, destination, retry_timeout_s=wait_s)


class ChangeLog:
    """Resolves positions of one destination's log, plans the micro-batches of a Spark query in the driver, and reads
    their parts on the executors.

    >>> log = ChangeLog(ReadOptions.of({"server": "127.0.0.1:11115", "table": "shop.orders"}))
    >>> start = log.resolve("earliest")
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        # The server keeps what this query has planned and not committed, whatever other queries have done.
        self._reader = f"spark-{secrets.token_hex(8)}"
        self._identities: dict[tuple[int, str], str] = {}  # of log files, by epoch and name
        self._checked: set[str] = set()  # offsets that are of this log
        self._renewal = CursorRenewal()
        self._end_report = LogEndReport(self._ask_source_end)

    @property
    def client(self) -> FlightClient:
        """The Flight client for this query's server and destination, which the queries of this process share."""
        return shared_client(self._options.server, self._options.destination, self._options.wait_s)

    @property
    def _hasty_client(self) -> FlightClient:
        """Return a client that does not retry."""
        return shared_client(self._options.server, self._options.destination, 0.0)

    # -- positions

    def resolve(self, text: str) -> Position:
        """Return the position that the text of an option means now; it may also be an offset as JSON."""
        if text.startswith("{"):
            offset = json.loads(text)
            position = Position.from_json(offset)
            self._check_log(offset, position)  # it may come from a query for other tables
            return position
        return self.client.resolve_position(text)

    def resolve_start(self, text: str) -> Position:
        """Return the position at which a query begins. A time that is still to come has none, and is refused: the end
        of the log would come with changes from before that time."""
        now = datetime.now(UTC)
        point = None if text.startswith("{") else parse_start(text, now)
        if isinstance(point, Moment) and point.us > (now.timestamp() + _CLOCK_SKEW_S) * 1_000_000:
            raise ConfigurationError(
                f"startingPosition {text} is still to come (it is {now:%Y-%m-%d %H:%M:%S} UTC), and the log has no"
                " position for it yet. Start the query then; or begin with `latest`, and leave out earlier changes by"
                " their _commit_timestamp"
            )
        return self.resolve(text)

    def source_end(self) -> Position:
        """Return where the source's log ends now, captured or not."""
        end = self.client.source_end()
        self._end_report.record(end)
        return end

    def end_after(self, start: Position, wait_ms: int) -> Position:
        """Return where a batch from `start` should end; `start` itself when nothing came in time."""
        return self.plan_batch(start, wait_ms, start).position

    def plan_batch(self, start: Position, wait_ms: int, acked: Position, skip_bytes: int = 0) -> BatchEnd:
        """Return where a batch from `start` should end, and whether it may have rows for the query; it ends at `start`
        when nothing came in time. The server looks further in that time, until it has skipped `skip_bytes` of other
        tables. It may free what lies before `acked`."""
        limit = {**self._options.limit, "reader": self._reader, "skip_bytes": skip_bytes}
        return self.client.plan_batch(start, self._options.max_bytes, wait_ms, acked, **limit)

    def end_before(self, start: Position, last: Position) -> Position:
        """Return where a batch from `start` should end, not after `last`, which the source's log has reached.

        The server may be far from there still: it is waited for as long as its capture makes progress, also inside of
        one transaction.
        """
        progress = CaptureProgress(self._options.wait_s)
        while (end := self.end_after(start, self._options.poll_ms)) <= start < last:
            if progress.has_stalled(self.client.read_to()):
                raise SourceConnectionError(
                    f"the server has captured nothing new after {start} for {self._options.wait_s:.0f} s, but the log"
                    f" of its source goes to {last}: see `penstock status`; a longer wait is the option waitForServer"
                )
        return min(end, last)

    def tickets(self, start: Position, end: Position) -> list[bytes]:
        """Return the tickets of the parts of a range; each part can be read alone, any number of times."""
        options = self._options
        wanted = "" if options.includes_ddl else options.filter  # a statement has no table that could be asked for
        return self.client.plan_parts(options.tables, start, end, wanted)

    def read(self, ticket: bytes) -> "Iterator[Block]":
        """Return the blocks of one part, also when the server is restarted or moves meanwhile."""
        return self.client.read_part(ticket)

    def read_rows(
        self, ticket: bytes, layout: "ChangeLayout", pending: Mapping[TableName, PendingTable] | None = None
    ) -> "Iterator[pa.RecordBatch]":
        """Return the changes of one part in the columns of the query, in the order of the log; of tables that are
        `pending` only those of rows that were delivered."""
        delivered = None
        if pending:
            from penstock.spark.delivered_rows import DeliveredRows  # noqa: PLC0415 - brings kernels

            delivered = DeliveredRows(pending, self.client.find_inside)
        blocks = self.read(ticket)
        if len(self._options.tables) > 1:
            from penstock.binlog.xa.placement import join_blocks  # noqa: PLC0415 - brings kernels

            blocks = join_blocks(blocks, _JOINED_BYTES)
        for block in blocks:
            try:
                yield from layout.batches(block, delivered)
            except IncompatibleColumnError as error:
                raise self._explain(error) from None

    def _explain(self, error: IncompatibleColumnError) -> SchemaError:
        """Return the error with the statement that changed the table, and with what to do about it."""
        with suppress(PenstockError):
            table, position = TableName.parse(error.table), error.position
            statement = self.client.last_statement(table, error.column, position) if position is not None else None
            if statement is not None:
                return SchemaError(f"{error}. It was altered at {statement[0]} by: {statement[1]}. {_ALTERED_ADVICE}")
        return SchemaError(f"{error}. {_ALTERED_ADVICE}")

    def read_chunk(
        self, table: TableName, bounds: tuple[Limit, Limit], position: Position, key: str, layout: "TableLayout"
    ) -> "Iterator[pa.RecordBatch]":
        """Return the rows that a chunk of a table had at a position, in the columns of the query."""
        batches = self.client.read_chunk(table, bounds, position, layout.columns_of(table), key)
        for batch in batches:
            yield from layout.snapshot_batches(table, batch, position)

    def ack(self, position: Position) -> None:
        """Tell the server that everything before a position is done."""
        self.client.ack(position, self._reader)

    def keep_cursor(self) -> None:
        """Let the server keep the cursor of this query as long as this process lives, also during a long batch."""
        self._renewal.start(self._renew_cursor)

    def _renew_cursor(self) -> float:
        """Renew the cursor, and return for how many seconds the server keeps it."""
        return self._hasty_client.renew_reader(self._reader)

    # -- offsets

    def offset_of(self, position: Position) -> Offset:
        """Return the offset that Spark stores for a position, with the tables of the query and the identity of the log
        file."""
        marks = {"log": self._identity_of(position)}
        if self._options.tables:
            marks["tables"] = ",".join(sorted(map(str, self._options.tables)))
        else:
            marks["filter"] = self._options.filter
        return position.to_json() | {key: value for key, value in marks.items() if value}

    def position_of(self, offset: Offset) -> Position:
        """Return the binlog position of a Spark offset; raise an error when the offset is of another table or
        server."""
        position, key = Position.from_json(offset), json.dumps(offset)
        if key not in self._checked:
            self._check_content(offset)
            self._check_log(offset, position)
            if len(self._checked) > 1000:
                self._checked.clear()
            self._checked.add(key)
        return position

    def report(self) -> Offset | None:
        """Return the offset of the source's end, about a second old: what Spark shows as the latest offset.

        Nothing waits for it: while the server does not answer it is the last one, and None when there was none yet.
        """
        end = self._end_report.latest()
        return None if end is None else end.to_json()

    def _ask_source_end(self) -> Position:
        """Ask once where the source's log ends, to show it."""
        return self._hasty_client.source_end(for_display=True)

    def _check_content(self, offset: Offset) -> None:
        """Raise an error when an offset was made for other tables, or for another filter."""
        made_for, asked_for = str(offset.get("filter") or ""), self._options.filter
        tables = {str(table) for table in self._options.tables}
        tables_before = set(filter(None, str(offset.get("tables") or "").split(",")))
        is_unmarked = not made_for and not tables_before
        is_same = made_for == asked_for and (bool(asked_for) or bool(tables & tables_before))
        if not is_unmarked and not is_same:
            raise ConfigurationError(
                f"this checkpoint was made for {made_for or ', '.join(sorted(tables_before))}, not for"
                f" {asked_for or ', '.join(sorted(tables))}: a query for another table needs a checkpoint of its own"
            )

    def _check_log(self, offset: Offset, position: Position) -> None:
        """Raise an error when an offset was made with the log of another server."""
        recorded = offset.get("log")
        if recorded and (present := self._identity_of(position)) and present != recorded:
            raise PositionLostError(
                f"this checkpoint was made with the log of another server, or before the log was reset: {position.file}"
                f" was {recorded}, and is {present} now (server id, second it began); use the server of that"
                " checkpoint, or begin with a new checkpoint"
            )

    def _identity_of(self, position: Position) -> str:
        """Return what tells the log file of a position from others of its name; nothing when it is not there."""
        key = position.epoch, position.file
        if key not in self._identities:
            self._identities[key] = self.client.file_identity(position)
        return self._identities[key]
