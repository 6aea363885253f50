"""A block: whole binlog events of one log file with their index, in the shape that moves everywhere.

The raw bytes of the events lie one after the other in one buffer, what is known of each in another (see event_columns).
As Arrow it is a record batch with one line per event, over the very same memory: so Arrow Flight carries blocks as they
are. `tables` maps each table id used in the block to its TABLE_MAP event, wherever in the log that was, so that a block
can be decoded alone, later, elsewhere. `problems` says of which of them the schema is not known: the error is raised
only when such a table is decoded.
"""

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import to_arrow_numbers, to_numpy
from penstock.binlog.events.event_arrays import EventArrays
from penstock.binlog.events.event_columns import LONGS, SHORTS, EventColumns
from penstock.binlog.events.executed import executed_after
from penstock.binlog.events.layout import Entry, event_name
from penstock.binlog.events.state import GTID_BYTES
from penstock.binlog.events.table_map import parse_table_map, table_name
from penstock.binlog.gather import gather_bytes
from penstock.errors import BinlogError, SchemaError
from penstock.model import GtidSet, Position, TableName, TableSchema

EVENT_SCHEMA = pa.schema(
    [
        pa.field("event", pa.binary(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
        pa.field("span", pa.int64(), nullable=False),
        pa.field("kind", pa.uint8(), nullable=False),
        pa.field("entry", pa.uint8(), nullable=False),
        pa.field("boundary", pa.uint8(), nullable=False),
        pa.field("checksum", pa.uint8(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("server_id", pa.int64(), nullable=False),
        pa.field("table_id", pa.int64(), nullable=False),
        pa.field("transaction", pa.int64(), nullable=False),
        pa.field("ordinal", pa.int64(), nullable=False),
        pa.field("commit_us", pa.int64(), nullable=False),
        pa.field("gtid", pa.binary(GTID_BYTES), nullable=False),
    ]
)
_NUMBERS = [name for name in EVENT_SCHEMA.names if name in {*LONGS, *SHORTS}]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Whole events of one log file as raw bytes, with an index of them and the table maps that decode them;
    immutable.

        block = next(iter(LogFile(path)))
        block.column("entry"), block.start, block.end
    """

    file: str
    server_version: str
    tags: tuple[str, ...]  # of GTIDs
    data: NDArray[np.uint8]  # in which the events lie, one after the other
    index: EventColumns
    tables: Mapping[int, bytes]  # table id → TABLE_MAP body
    checksum: int | None = None  # one checksum over those of its events; none when one has none, or was not verified
    epoch: int = 0  # of its positions
    executed: GtidSet | None = None  # before the first event in the index's buffer; None when that is not known
    problems: Mapping[int, str] = field(default_factory=dict[int, str])  # table id → why its shape is not known
    # What was found out already. A part of the block, or a block that was made of it, finds it out again.
    flags: int | None = field(default=None, init=False, repr=False)  # what `scan_flags` returned
    final: GtidSet | None = field(default=None, init=False, repr=False)  # after its last event

    def __len__(self) -> int:
        return self.index.count

    @property
    def size_bytes(self) -> int:
        """Return the bytes of the events and of their index."""
        bounds = self.index.bounds
        return int(bounds[-1]) - int(bounds[0]) + EventColumns.buffer_size(len(self))

    def column(self, name: str) -> NDArray[Any]:
        """Return what the index knows of each event under a name such as `position`, `kind` or `timestamp`: an array
        with one value per event, as a view."""
        return self.index.column(name)

    @property
    def raw(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """Return the buffer of all events, and the start and size of each in it."""
        offsets = self.index.bounds.astype(np.int64)
        return self.data, offsets[:-1], offsets[1:] - offsets[:-1]

    @property
    def gtids(self) -> NDArray[np.uint8]:
        """Return the GTID of each event's transaction, one row of GTID_BYTES bytes per event, as a view."""
        return self.index.gtids

    @property
    def events(self) -> pa.RecordBatch:
        """Return the block as Arrow, over the same memory."""
        columns = {name: to_arrow_numbers(self.column(name)) for name in _NUMBERS}
        columns["event"] = self.event_array
        buffers = [None, pa.py_buffer(self.gtids)]
        columns["gtid"] = pa.Array.from_buffers(pa.binary(GTID_BYTES), len(self), buffers)
        return pa.RecordBatch.from_arrays([columns[name] for name in EVENT_SCHEMA.names], schema=EVENT_SCHEMA)

    @property
    def event_array(self) -> pa.Array:
        """Return the events as an Arrow array of binaries over the same memory."""
        buffers = [None, pa.py_buffer(self.index.bounds), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.binary(), len(self), buffers)

    @property
    def start(self) -> Position:
        """Return the position at which the first event begins."""
        return Position(self.file, int(self.column("position")[0]), epoch=self.epoch)

    @property
    def end(self) -> Position:
        """Return the position at which the last event ends."""
        return self.end_of_event(len(self) - 1)

    def end_of_event(self, i: int) -> Position:
        """Return the position at which event number `i` ends."""
        offset = int(self.column("position")[i]) + int(self.column("span")[i])
        return Position(self.file, offset, int(self.column("timestamp")[i]), self.epoch)

    def boundary_after(self, i: int) -> Position:
        """Return the position after an event that ends a transaction, with the GTIDs of all transactions up to
        there."""
        return replace(self.end_of_event(i), gtids=self.executed_before(i + 1))

    def executed_before(self, i: int) -> GtidSet | None:
        """Return the GTIDs of all transactions before event number `i`; None when they are not known."""
        if self.executed is None or not self.index.first + i:
            return self.executed
        if self.final is not None and not self.column("boundary")[i:].any():
            return self.final
        whole = self.index.with_preceding(i)
        executed = executed_after(self.executed, whole.gtids, whole.column("boundary"), self.tags)
        if i == len(self):
            object.__setattr__(self, "final", executed)
        return executed

    @property
    def boundaries(self) -> NDArray[np.int64]:
        """Return the numbers of the events after which the log is between two transactions."""
        return np.flatnonzero(self.column("boundary"))

    def slice(self, first: int, stop: int) -> "Block":
        """Return the events first … stop-1 as a block, without copying."""
        if not first and stop == len(self):
            return self
        return replace(self, index=self.index.slice(first, stop), checksum=None)

    def split(self, size: int) -> "Iterator[Block]":
        """Yield slices of whole transactions with about `size` bytes each."""
        ends = self.boundaries + 1
        if self.size_bytes <= 2 * size or not ends.size:
            yield self
            return
        bounds, first = self.index.bounds, 0
        while first < len(self):
            stop = int(np.searchsorted(bounds[ends], int(bounds[first]) + size))
            stop = int(ends[stop]) if stop < ends.size else len(self)
            yield self.slice(first, stop)
            first = stop

    def take(self, events: NDArray[np.int64]) -> "Block":
        """Return a copy with these events only."""
        data, bounds = gather_bytes(self.data, self.index.bounds, np.ascontiguousarray(events, np.int64))
        columns = {name: self.column(name)[events] for name in _NUMBERS}
        index = EventColumns.from_columns(columns, bounds, self.gtids[events])
        return replace(self, data=data, index=index, checksum=None, executed=None)

    def filter(self, mask: NDArray[np.bool_]) -> "Block":
        """Return the events for which the mask is true; without copying when it is true for all."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def prepend(self, before: "Block") -> "Block":
        """Return a copy with the events of another block before its own."""
        raw = pa.concat_arrays([before.event_array, self.event_array])
        columns = {name: np.concatenate([before.column(name), self.column(name)]) for name in _NUMBERS}
        return self._with(raw, columns, np.concatenate([before.gtids, self.gtids]))

    @staticmethod
    def concatenate(parts: "Sequence[Block]") -> "Block":
        """Return parts of one log file that follow one another as one block; several of them are copied. Where they
        have the same table id, they have the same table map."""
        first = parts[0]
        if len(parts) == 1:
            return first
        raw = pa.concat_arrays([part.event_array for part in parts])
        columns = {name: np.concatenate([part.column(name) for part in parts]) for name in _NUMBERS}
        tables = {number: body for part in parts for number, body in part.tables.items()}
        problems = {number: problem for part in parts for number, problem in part.problems.items()}
        data, bounds = _bytes_of(raw)
        index = EventColumns.from_columns(columns, bounds, np.concatenate([part.gtids for part in parts]))
        shared = {"tables": tables, "problems": problems, "executed": first.executed_before(0)}
        return replace(first, data=data, index=index, checksum=None, **shared)

    def with_columns(self, **columns: NDArray[Any]) -> "Block":
        """Return the block with other values in these columns; the events themselves are not copied."""
        known = {name: columns.get(name, self.column(name)) for name in _NUMBERS}
        index = EventColumns.from_columns(known, self.index.bounds, self.gtids)
        return replace(self, index=index, executed=self.executed_before(0))

    def _with(self, raw: pa.Array, columns: Mapping[str, NDArray[Any]], gtids: NDArray[np.uint8]) -> "Block":
        """Return a block of these events with the table maps of this one."""
        data, bounds = _bytes_of(raw)
        return replace(
            self, data=data, index=EventColumns.from_columns(columns, bounds, gtids), checksum=None, executed=None
        )

    def between(self, start: Position, end: Position) -> "Block":
        """Return the events that lie after `start` and end at or before `end`."""
        own = Position(self.file, 0, epoch=self.epoch).file_key
        low, high = start.file_key, end.file_key
        position = self.column("position")
        first = 0 if own > low else len(self) if own < low else int(np.searchsorted(position, start.offset))
        stop = len(self) if own < high else 0 if own > high else int(np.searchsorted(position, end.offset))
        if stop and own == high and self.end_of_event(stop - 1) > end:
            stop -= 1
        return self.slice(first, max(first, stop))

    def select_tables(self, tables: set[TableName]) -> "Block":
        """Return a block with only the rows events of these tables."""
        return self.select_tables_where(tables.__contains__)

    def select_tables_where(self, wanted: Callable[[TableName], bool]) -> "Block":
        """Return a block with only the rows events of the tables for which `wanted` is true. All other events are left
        out: rows of other tables, statements, begins and ends of transactions."""
        ids = [number for number, body in self.tables.items() if wanted(table_name(body))]
        mask = (self.column("entry") == Entry.ROWS) & np.isin(self.column("table_id"), ids)
        return self.filter(mask).with_tables({number: self.tables[number] for number in ids})

    def with_tables(self, tables: Mapping[int, bytes]) -> "Block":
        """Return the block with these table maps, and the problems of these tables."""
        problems = self.problems
        if problems:
            problems = {number: problem for number, problem in problems.items() if number in tables}
        return replace(self, tables=tables, problems=problems)

    def schema_of(self, table_id: int) -> TableSchema:
        """Return the schema of a table id of the block; raise SchemaError where it is not known."""
        if table_id in self.problems:
            raise SchemaError(f"{self._first_rows(table_id)}: {self.problems[table_id]}")
        try:
            return parse_table_map(self.tables[table_id], self.server_version)
        except (BinlogError, SchemaError) as error:
            raise type(error)(f"{self._first_rows(table_id)}: {error}") from None

    def _first_rows(self, table_id: int) -> str:
        """Return where the first rows of a table are, for error messages."""
        rows = np.flatnonzero((self.column("table_id") == table_id) & (self.column("entry") == Entry.ROWS))
        if not rows.size:
            return f"{self.start if len(self) else self.file} table id {table_id}"
        where = Position(self.file, int(self.column("position")[rows[0]]), epoch=self.epoch)
        return f"{where} {event_name(int(self.column('kind')[rows[0]]))} of table id {table_id}"

    def encode_description(self, **extra: Any) -> bytes:
        """Return as JSON bytes what the record batch does not hold: file, server version, table maps, epoch, GTIDs."""
        tables = {str(number): base64.b64encode(body).decode() for number, body in self.tables.items()}
        description = {"file": self.file, "server_version": self.server_version, "tags": self.tags, "tables": tables}
        executed = self.executed_before(0)
        description |= {"epoch": self.epoch, "executed": executed and executed.text}
        if self.problems:
            description["problems"] = {str(number): problem for number, problem in self.problems.items()}
        return json.dumps(description | extra).encode()

    @classmethod
    def from_arrow(cls, events: pa.RecordBatch, description: bytes) -> "Block":
        """Return the block of a record batch that came over Arrow Flight, and its description; its events are not
        copied."""
        data, bounds = _bytes_of(events.column("event"))
        columns = {name: to_numpy(events.column(name)) for name in _NUMBERS}
        return cls.from_description(
            description, data, EventColumns.from_columns(columns, bounds, _gtids_of(events.column("gtid")))
        )

    @classmethod
    def from_description(
        cls, description: bytes, data: NDArray[np.uint8], index: EventColumns, checksum: int | None = None
    ) -> "Block":
        """Return the block of event bytes, their index, and the description that `encode_description` made."""
        fields = json.loads(description)
        tables = {int(number): base64.b64decode(body) for number, body in fields["tables"].items()}
        names = fields["file"], fields["server_version"], tuple(fields["tags"])
        executed = None if fields["executed"] is None else GtidSet.parse(fields["executed"])
        problems = {int(number): problem for number, problem in fields.get("problems", {}).items()}
        return cls(*names, data, index, tables, checksum, fields["epoch"], executed, problems)

    @classmethod
    def from_arrays(
        cls,
        file: str,
        server_version: str,
        tags: tuple[str, ...],
        data: NDArray[np.uint8],
        arrays: EventArrays,
        count: int,
        tables: Mapping[int, bytes],
        checksum: int | None = None,
        epoch: int = 0,
        executed: GtidSet | None = None,
    ) -> "Block":
        """Return events 0 … count-1 of the reader's scratch arrays as a block; the arrays are copied, `data` is not."""
        columns = {name: getattr(arrays, name)[:count] for name in _NUMBERS}
        index = EventColumns.from_columns(columns, arrays.bounds(0, count), arrays.gtid[:count])
        return cls(file, server_version, tags, data, index, tables, checksum, epoch, executed)


def _bytes_of(events: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Return the buffer of an array of Arrow's binaries, and where in it one ends and the next begins, as views."""
    _, bounds, data = events.buffers()
    if not len(events):
        return np.empty(0, np.uint8), np.zeros(1, np.int32)
    return np.frombuffer(data, np.uint8), np.frombuffer(bounds, np.int32, len(events) + 1, 4 * events.offset)


def _gtids_of(column: pa.Array) -> NDArray[np.uint8]:
    """Return the GTIDs of a column, one line per event; a buffer that came over the wire may be longer than its
    lines."""
    raw = np.frombuffer(column.buffers()[1] or b"", np.uint8)
    first = column.offset * GTID_BYTES
    return raw[first : first + len(column) * GTID_BYTES].reshape(-1, GTID_BYTES)
