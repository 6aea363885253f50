"""Blocks → canal's entries.

    BEGIN        TRANSACTIONBEGIN, with the thread that ran the transaction where the log says it
    rows event   ROWDATA, with all its rows
    statement    ROWDATA: DDL, the statement behind rows, one that a log in statement format holds
    XID, COMMIT  TRANSACTIONEND, with the number of the transaction

A transaction of which a block has all and nothing else is to be shown is not shown.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.arrays import distinct
from penstock.binlog.events.annotation import annotation_texts
from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import HEADER, Entry
from penstock.binlog.events.layout import EventType as LogEvent
from penstock.binlog.events.query import begin_with
from penstock.binlog.rows.decode import has_old_times
from penstock.binlog.rows.mixed import should_decode_alone
from penstock.binlog.rows.programs import MAX_TABLES, TablePrograms
from penstock.canal import protobuf
from penstock.canal.schema import number_of
from penstock.canal.types import CanalEventType, EntryType
from penstock.filter import ColumnRules
from penstock.model import Column, TableSchema
from penstock.render.canal import entry_kernels as kernels
from penstock.render.canal.gtids import LogicalClocks
from penstock.render.canal.mixed_rows import MixedRowsEvents, write_mixed_rows
from penstock.render.canal.notes import PendingNotes, are_shown_notes
from penstock.render.canal.rows import EncodedRows, write_table_rows
from penstock.render.canal.statements import EntryContent, WantsTable, build_statement_entry, encode_note
from penstock.render.canal.tables import (
    TableEncoding,
    TablePlan,
    encode_names,
    join_bytes,
    list_frames,
    plan_table_encoding,
)
from penstock.render.canal.values import CanalValueWriter
from penstock.schema.declared import BlockColumnTypes

_ROWS = {
    LogEvent.WRITE_ROWS_V1: CanalEventType.INSERT, LogEvent.WRITE_ROWS_V2: CanalEventType.INSERT,
    LogEvent.UPDATE_ROWS_V1: CanalEventType.UPDATE, LogEvent.UPDATE_ROWS_V2: CanalEventType.UPDATE,
    LogEvent.PARTIAL_UPDATE_ROWS: CanalEventType.UPDATE,
    LogEvent.DELETE_ROWS_V1: CanalEventType.DELETE, LogEvent.DELETE_ROWS_V2: CanalEventType.DELETE,
}  # fmt: skip
_ROW_TYPES = np.zeros(256, np.int64)
_ROW_TYPES[[int(kind) for kind in _ROWS]] = list(_ROWS.values())
# As plain numbers, which arrays are compared with faster than with members of an Enum.
_QUERY, _XID, _XA_PREPARE = int(LogEvent.QUERY), int(LogEvent.XID), int(LogEvent.XA_PREPARE)
_EXECUTE_LOAD_QUERY = int(LogEvent.EXECUTE_LOAD_QUERY)
_BEGIN, _END, _DDL, _OTHER, _ANY_ROWS = (
    int(kind) for kind in (Entry.BEGIN, Entry.END, Entry.DDL, Entry.OTHER, Entry.ROWS)
)
_TRANSACTION_BEGIN, _TRANSACTION_END = int(EntryType.TRANSACTIONBEGIN), int(EntryType.TRANSACTIONEND)
_BINARY = {"uuid", "inet4", "inet6"}  # types of MariaDB
_XA_OUTCOMES = [int(CanalEventType.XACOMMIT), int(CanalEventType.XAROLLBACK)]
_ZERO_END = protobuf.encode_text(number_of("TransactionEnd", "transactionId"), "0")  # of one without a number
_VERSION, _LOG_FILE = number_of("Header", "version"), number_of("Header", "logfileName")
DeclaredTypes = Callable[[Block], BlockColumnTypes]


@dataclass(frozen=True, slots=True)
class EntryOptions:
    """What a canal client is shown and how: its columns, statements, transaction marks, GTIDs and the style of
    values.
    """

    declared_types: DeclaredTypes
    values: CanalValueWriter = field(default_factory=CanalValueWriter)
    columns: ColumnRules = field(default_factory=ColumnRules)
    wants_table: WantsTable | None = None  # statements about these tables; rows of others are hidden already
    transactions: bool = True
    gtids: bool = False
    accounts: bool = False  # statements about users and privileges, with masked passwords


@dataclass(frozen=True, slots=True, eq=False)
class EncodedEntries:
    """Canal entries of a block as protobuf bytes, each a field of canal's Messages; entry i stops at `ends[i]`."""

    data: NDArray[np.uint8]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return self.ends.size


class EntryEncoder:
    """Encodes blocks as canal entries for one client, and caches how to decode each table between blocks.

    encoder = EntryEncoder(EntryOptions(declared_types))
    encoder.encode_block(block).data  # protobuf bytes
    """

    def __init__(self, rendering: EntryOptions) -> None:
        self._rendering = rendering
        self._basis: tuple[object, str] | None = None  # basis of declared types and server version, of the plans
        self._plans: dict[bytes, TablePlan] = {}  # by table map
        self._shapes: dict[tuple[object, ...], tuple[tuple[Column, ...], TableEncoding]] = {}
        self._programs = self._new_programs()
        self._notes = PendingNotes()
        self.clocks = LogicalClocks()

    def encode_block(self, block: Block) -> EncodedEntries:
        """Encode the entries of a block as protobuf bytes, together with a pending statement of the block before."""
        return _BlockEncoder(self, self._notes.prepend_pending(block), self._rendering).encode()

    @property
    def programs(self) -> TablePrograms:
        """Return the row-walking programs of the plans that the last call of `plan_tables` returned."""
        return self._programs

    def plan_tables(self, block: Block, numbers: Sequence[int]) -> list[TablePlan]:
        """Return the plan to decode and write the rows of each of these table ids of the block."""
        if self._programs.is_full or len(self._plans) >= MAX_TABLES:
            self._plans, self._shapes, self._programs = {}, {}, self._new_programs()
        types, tables = self._rendering.declared_types(block), block.tables
        if types.basis is None:
            return [self._plan_table(block, number, types.of_table(number)) for number in numbers]
        if self._basis is None or self._basis[0] is not types.basis or self._basis[1] != block.server_version:
            self._plans, self._basis = {}, (types.basis, block.server_version)
        known = self._plans
        for number in numbers:
            if tables[number] not in known or number in block.problems:
                known[tables[number]] = self._plan_table(block, number, types.of_table(number))
        return [known[tables[number]] for number in numbers]

    def _plan_table(self, block: Block, number: int, declared: tuple[str, ...]) -> TablePlan:
        """Plan one table version; tables that differ in their names only share columns, frames and program."""
        logged, rules = block.schema_of(number), self._rendering.columns
        names = None if rules.is_empty else tuple(column.name for column in rules.columns_to_show(logged))
        key = id(logged.columns), logged.key, declared, names, block.server_version
        known = self._shapes.get(key)
        if known is None:
            table = _restore_declared_types(logged, declared)
            plan = plan_table_encoding(table, rules.columns_to_show(table), declared, self._rendering.values)
            if not has_old_times(table, block.server_version):
                plan = replace(plan, program=self._programs.add(table, plan.columns, list_frames(plan)))
            # With the columns by whose identity it is found: they live as long as it does.
            known = self._shapes[key] = logged.columns, plan
        return TablePlan(known[1], known[1].program, logged.name, encode_names(logged.name))

    def _new_programs(self) -> TablePrograms:
        """Return an empty set of row-walking programs."""
        return TablePrograms(has_labels=self._rendering.values.style == "penstock")


def _restore_declared_types(table: TableSchema, declared: Sequence[str]) -> TableSchema:
    """Return the schema with MariaDB's UUID and INET columns marked, which the log itself stores as BINARY."""
    kinds = [text.partition("(")[0] for text in declared]
    if _BINARY.isdisjoint(kinds):
        return table
    pairs = zip(table.columns, kinds, strict=True)
    columns = (replace(column, declared=kind if kind in _BINARY else column.declared) for column, kind in pairs)
    return replace(table, columns=tuple(columns))


class _BlockEncoder:
    """Encodes one block: marks which events become entries, collects what each says, and calls the kernels."""

    def __init__(self, entries: EntryEncoder, block: Block, rendering: EntryOptions) -> None:
        self._entries, self._block, self._rendering = entries, block, rendering
        self._names = [protobuf.encode_number(_VERSION, 1) + protobuf.encode_text(_LOG_FILE, block.file), b""]
        self._ready = list[bytes]()
        self._ready_bytes = 0
        self._facts = np.zeros((kernels.FACTS, len(block)), np.int64)
        self._facts[kernels.NAMES] = 1
        self._is_entry = np.zeros(len(block), np.bool_)

    def encode(self) -> EncodedEntries:
        """Encode all entries of the block."""
        block = self._block
        if not len(block):
            return EncodedEntries(np.empty(0, np.uint8), np.empty(0, np.int64))
        facts = self._facts
        _, starts, sizes = block.raw
        facts[kernels.OFFSET] = block.column("position")
        facts[kernels.SERVER_ID] = block.column("server_id")
        facts[kernels.TIME_MS] = block.column("timestamp") * 1000
        facts[kernels.LENGTH] = sizes
        facts[kernels.FIRST] = facts[kernels.LAST] = starts + HEADER
        rows = self._add_rows()
        self._add_statements()
        self._add_notes()
        self._add_transaction_marks()
        return self._encode_entries(rows)

    # -- what is an entry

    def _add_rows(self) -> NDArray[np.uint8]:
        """Mark the rows events as entries, and return their RowData as protobuf bytes."""
        block, facts = self._block, self._facts
        events = np.flatnonzero(block.column("entry") == _ANY_ROWS)
        ids = block.column("table_id")[events]
        numbers = distinct(ids)
        plans = self._entries.plan_tables(block, numbers)
        table = np.searchsorted(np.array(numbers, np.int64), ids)
        facts[kernels.NAMES, events] = len(self._names) + table
        self._names += [plan.header for plan in plans]
        self._is_entry[events] = True
        facts[kernels.FIRST, events] = facts[kernels.LAST, events] = 0
        pieces, done = list[NDArray[np.uint8]](), 0
        for rows in self._write_rows(events, table, plans):
            self._record_row_ranges(rows, done)
            pieces.append(rows.data)
            done += rows.data.size
        facts[kernels.TABLE_ID, events] = ids
        facts[kernels.ENTRY_TYPE, events] = EntryType.ROWDATA
        facts[kernels.EVENT_TYPE, events] = _ROW_TYPES[block.column("kind")[events]]
        facts[kernels.STORE, events] = kernels.ROWS
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces or [np.empty(0, np.uint8)])

    def _write_rows(
        self, events: NDArray[np.int64], table: NDArray[np.int64], plans: Sequence[TablePlan]
    ) -> Iterator[EncodedRows]:
        """Yield the RowData of the rows events: tables with few rows together, the others one by one; `table` is the
        number of each event's plan.
        """
        block, values = self._block, self._rendering.values
        program = np.array([plan.program for plan in plans], np.int64)
        alone = should_decode_alone(block, events, table, len(plans)) | (program < 0)
        if not alone.all():
            is_mixed = ~alone[table]
            mixed_events = MixedRowsEvents(block, events[is_mixed], self._entries.programs, program[table[is_mixed]])
            rows = write_mixed_rows(mixed_events, values)
            if rows is None:
                alone[:] = True
            else:
                yield rows
        for number in np.flatnonzero(alone).tolist():
            yield from write_table_rows(block, events[table == number], plans[number], values)

    def _record_row_ranges(self, rows: EncodedRows, done: int) -> None:
        """Record where the rows of each event lie; an event whose rows came in several pieces has them side by side."""
        facts, event = self._facts, rows.event
        is_new = facts[kernels.ROW_COUNT, event] == 0
        facts[kernels.FIRST, event[is_new]] = rows.first[is_new] + done
        facts[kernels.LAST, event] = rows.last + done
        facts[kernels.ROW_COUNT, event] += rows.count

    def _add_statements(self) -> None:
        """Make an entry of each DDL, data and XA statement that the client is to see."""
        block = self._block
        kind, entry, boundary = block.column("kind"), block.column("entry"), block.column("boundary")
        is_query = (kind == _QUERY) | (kind == _EXECUTE_LOAD_QUERY)
        if not is_query.any():
            return
        is_statement = is_query & ((entry == _DDL) | ((entry == _OTHER) & (boundary == 0)))
        is_statement |= begin_with(block, is_query & (entry == _BEGIN), "XA ")
        for event in np.flatnonzero(is_statement).tolist():
            content = build_statement_entry(
                block, event, self._rendering.wants_table, accounts=self._rendering.accounts
            )
            if content is not None:
                self._add_entry(event, content)

    def _add_entry(self, event: int, content: EntryContent) -> None:
        """Make an event an entry with this content."""
        facts = self._facts
        self._is_entry[event] = True
        facts[kernels.ENTRY_TYPE, event] = content.entry_type
        facts[kernels.EVENT_TYPE, event] = content.event_type
        facts[kernels.NAMES, event] = self._add_header_names(content.names)
        facts[kernels.FIRST, event], facts[kernels.LAST, event] = self._add_store_value(content.store)

    def _add_notes(self) -> None:
        """Add the statement that produced rows (Rows_query or Annotate_rows) where its rows are shown.

        Such a statement contains the values of all columns, so it is left out when the client may not see some of them.
        """
        block = self._block
        if not self._rendering.columns.is_empty:
            return
        events = np.flatnonzero(are_shown_notes(block))
        if not events.size:
            return
        for event, text in zip(events.tolist(), annotation_texts(block, events).to_pylist(), strict=True):
            self._add_entry(event, EntryContent(EntryType.ROWDATA, CanalEventType.QUERY, b"", encode_note(text)))

    def _add_transaction_marks(self) -> None:
        """Add the begin and end entries of transactions that have something between them."""
        block, facts = self._block, self._facts
        kind, entry, transaction = (block.column(name) for name in ("kind", "entry", "transaction"))
        begins = (entry == _BEGIN) & ~self._is_entry
        # MariaDB has a GTID, and behind it an XA START.
        begins[:-1] &= ~(self._is_entry[1:] & (facts[kernels.ENTRY_TYPE, 1:] == _TRANSACTION_BEGIN))
        ends = (entry == _END) & (kind != _XA_PREPARE)
        is_xa = self._is_entry & (entry == _BEGIN)
        starts = np.flatnonzero(np.concatenate([[True], transaction[1:] != transaction[:-1]]))
        group = np.repeat(np.arange(starts.size), np.diff(np.append(starts, len(block))))
        # An XA COMMIT comes with the rows that it commits, and is shown also where none of them is.
        is_outcome = self._is_entry & np.isin(facts[kernels.EVENT_TYPE], _XA_OUTCOMES)
        has_content = np.logical_or.reduceat(self._is_entry & ~is_xa & ~is_outcome, starts)
        # Of one that begins before the block, or ends after it, nobody knows.
        has_content[0] |= transaction[0] != block.column("position")[0]
        has_content[-1] |= not block.column("boundary")[-1]
        is_shown = has_content[group]
        self._is_entry &= is_shown | is_outcome
        if not self._rendering.transactions:
            self._is_entry &= ~is_xa
            return
        begins &= is_shown
        ends &= is_shown
        with_thread = begins & (kind == _QUERY)
        facts[kernels.ENTRY_TYPE, begins] = _TRANSACTION_BEGIN
        facts[kernels.ENTRY_TYPE, ends] = _TRANSACTION_END
        facts[kernels.STORE, with_thread] = kernels.BEGIN
        facts[kernels.STORE, ends & (kind == _XID)] = kernels.XID
        without = ends & (kind != _XID)
        if without.any():
            facts[kernels.FIRST, without], facts[kernels.LAST, without] = self._add_store_value(_ZERO_END)
        self._is_entry |= begins | ends

    # -- what they are made of

    def _add_header_names(self, names: bytes) -> int:
        """Add encoded schema and table names, and return their number."""
        self._names.append(names)
        return len(self._names) - 1

    def _add_store_value(self, raw: bytes) -> tuple[int, int]:
        """Add the encoded store value of an entry, and return where it begins and ends."""
        first = self._ready_bytes
        self._ready.append(raw)
        self._ready_bytes += len(raw)
        return first, self._ready_bytes

    def _encode_entries(self, rows: NDArray[np.uint8]) -> EncodedEntries:
        """Measure and write all entries with their headers around `rows`."""
        block, events = self._block, np.flatnonzero(self._is_entry)
        facts = np.ascontiguousarray(self._facts[:, events])
        names, name_texts = join_bytes(self._names)
        if self._rendering.gtids:
            gtids = self._entries.clocks.collect_gtid_texts(block, events)
            facts[kernels.ABOUT], facts[kernels.GTID] = gtids.which, gtids.which
            properties, whole = (gtids.abouts, gtids.about_texts), (gtids.sets, gtids.set_texts)
        else:
            properties = whole = join_bytes([b""])
        sizes, ends = np.empty((events.size, 3), np.int64), np.empty(events.size, np.int64)
        data = block.raw[0]
        kernels.measure_entries(facts, data, names, properties[0], whole[0], sizes, ends)
        out = np.empty(int(ends[-1]) if ends.size else 0, np.uint8)
        ready = np.frombuffer(b"".join(self._ready), np.uint8)
        kernels.write_entries(
            facts, data, rows, ready, name_texts, names, properties[1], properties[0], whole[1], whole[0], sizes, out
        )
        return EncodedEntries(out, ends)
