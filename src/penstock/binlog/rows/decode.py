"""Rows events of one table version → Arrow arrays, column by column."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.problem import event_error
from penstock.binlog.rows.heads import ENDS_EARLY, OTHER_COLUMN_COUNT
from penstock.binlog.rows.locate import RowsProblemError, locate
from penstock.binlog.rows.located import UNKNOWN, LocatedRows, RowLayout
from penstock.binlog.values.column import DEFAULT, DecodeOptions, wire_size_of
from penstock.binlog.values.decode import Fields, decode_column
from penstock.binlog.values.problem import TooLongError, ValueProblemError
from penstock.errors import BinlogError
from penstock.model import ChangeKind, Column, Position, TableSchema, WireType

if TYPE_CHECKING:
    from penstock.binlog.values.json_operations import JsonOperations

_OLD = {WireType.TIME, WireType.DATETIME, WireType.TIMESTAMP}


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Row images with the columns that were asked for."""

    columns: dict[str, pa.Array]
    located: LocatedRows
    events: NDArray[np.int64]  # index in the block of each event that `located.event` counts
    # Changes to documents that the log does not have, by column; the values of these rows are null.
    operations: "dict[str, JsonOperations]" = field(default_factory=dict[str, "JsonOperations"])


@lru_cache(maxsize=12_000)
def _layout(schema: TableSchema, names: frozenset[str]) -> RowLayout:
    wires = [wire_size_of(column) for column in schema.columns]
    return RowLayout.from_wires(
        np.array([(wire.length_bytes, wire.width) for wire in wires], np.int64).reshape(-1, 2),
        np.array([column.name in names for column in schema.columns], np.bool_),
        np.array([column.type is WireType.JSON for column in schema.columns], np.bool_),
    )


def choice_for_block(block: Block, choice: DecodeOptions) -> DecodeOptions:
    """Return the decoding choice with what follows from the server that wrote the block."""
    return replace(choice, json_doubles="1") if block.server_version.startswith("5.7") else choice


def has_old_times(schema: TableSchema, server_version: str) -> bool:
    """Return whether rows may be cut at wrong offsets: MariaDB does not log the width of times in the format before
    5.6."""
    return "MariaDB" in server_version and bool(_OLD & {column.type for column in schema.columns})


def decode_rows(
    block: Block, events: NDArray[np.int64], schema: TableSchema, names: Sequence[str], choice: DecodeOptions = DEFAULT
) -> Iterator[Rows]:
    """Decode the columns `names` (all known to `schema`) of the rows events at these indexes of the block.

    All are decoded at once, except where that would take much more memory than the block itself.
    """
    data, starts, sizes = block.raw
    starts = starts[events]
    ends = starts + sizes[events] - block.column("checksum")[events]
    is_old = has_old_times(schema, block.server_version)
    choice = choice_for_block(block, choice)
    wanted = frozenset(names)
    chosen = [column for column in schema.columns if column.name in wanted]
    source = _Source(block, events, schema, data, chosen, choice)
    try:
        for located in locate(data, starts, ends, _layout(schema, wanted)):
            if is_old and located.is_whole:
                _check_old_rows(block, schema, located)
            yield from _decode(source, located)
    except RowsProblemError as problem:
        raise _rows_error(block, events, schema, problem) from None


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """The block, events and table schema of one decoding, which all its pieces share."""

    block: Block
    events: NDArray[np.int64]
    schema: TableSchema
    data: NDArray[np.uint8]
    chosen: list[Column]
    choice: DecodeOptions


def _decode(source: _Source, located: LocatedRows) -> Iterator[Rows]:
    """Yield the decoded rows: all at once, or in halves where a column is too long for one array. What is compressed
    can become a thousand times as long."""
    try:
        columns = {column.name: _column(source, column, located, line) for line, column in enumerate(source.chosen)}
        operations = _operations(source, located)
    except TooLongError as problem:
        middle = located.rows // 2
        middle += middle < located.rows and located.kind[middle] == ChangeKind.UPDATE_POSTIMAGE
        if middle in {0, located.rows}:
            raise _value_error(source, located, problem) from None
        for first, stop in ((0, middle), (middle, located.rows)):
            yield from _decode(source, located.slice_rows(first, stop))
    else:
        yield Rows(columns, located, source.events, operations)


def _operations(source: _Source, located: LocatedRows) -> "dict[str, JsonOperations]":
    """Read the differences to documents that the log does not have."""
    result: dict[str, JsonOperations] = {}
    if not located.has_unknown:
        return result
    # Few logs have them, and the kernels take their time to load.
    from penstock.binlog.values.json_format import JsonError, JsonFault  # noqa: PLC0415
    from penstock.binlog.values.json_operations import read_operations  # noqa: PLC0415

    for line, column in enumerate(source.chosen):
        offsets = located.offsets(line).astype(np.int64)
        is_unknown = offsets <= UNKNOWN
        if not is_unknown.any():
            continue
        diff_offsets = np.where(is_unknown, UNKNOWN - offsets, 0)
        lengths = np.where(is_unknown, located.lengths(line), 0).astype(np.int64)
        try:
            result[column.name] = read_operations(source.data, diff_offsets, lengths)
        except JsonError as error:
            if error.fault is JsonFault.TOO_LARGE:
                problem: ValueProblemError = TooLongError(error.row)
            else:
                problem = ValueProblemError(error.row, f"is JSON that cannot be read: {error.reason}", error.where)
            problem.line = line
            if isinstance(problem, TooLongError):
                raise problem from None
            raise _value_error(source, located, problem) from None
    return result


def _column(source: _Source, column: Column, located: LocatedRows, line: int) -> pa.Array:
    fields = Fields(
        source.data,
        located.offsets(line),
        located.lengths(line),
        int(located.missing[line]),
        located.partial[line] if located.partial.size else located.partial.reshape(-1),
    )
    try:
        return decode_column(column, source.choice, fields)
    except ValueProblemError as problem:
        problem.line = line
        if isinstance(problem, TooLongError):
            raise
        raise _value_error(source, located, problem) from None


def _value_error(source: _Source, located: LocatedRows, problem: ValueProblemError) -> BinlogError:
    at = problem.byte if problem.byte is not None else int(located.offsets(problem.line)[problem.row])
    problem_text = f"column {source.chosen[problem.line].name} {problem.what}"
    return _error(source.block, source.schema, int(source.events[located.event[problem.row]]), at, problem_text)


def _check_old_rows(block: Block, schema: TableSchema, located: LocatedRows) -> None:
    """Raise an error if rows were cut at wrong offsets. The log does not say how wide a time in an old format with a
    fraction is. MariaDB sets the bits that fill up a null bitmap: where they are not set, the cut was wrong."""
    data, columns = block.raw[0], len(schema.columns)
    filling = 0xFF << columns % 8 & 0xFF if columns % 8 else 0
    last = data[located.start + (columns - 1) // 8]
    wrong = last & filling != filling
    if wrong.any():
        row = int(np.argmax(wrong))
        raise RowsProblemError(ENDS_EARLY, int(located.start[row]), int(located.event[row]))


def _rows_error(block: Block, events: NDArray[np.int64], schema: TableSchema, problem: RowsProblemError) -> BinlogError:
    problem_text = (
        f"the event has another number of columns than the {len(schema.columns)} of its table map"
        if problem.code == OTHER_COLUMN_COUNT
        else "a row reaches over the end of its event"
    )
    old = [column.name for column in schema.columns if column.type in _OLD]
    if old and problem.code != OTHER_COLUMN_COUNT:
        problem_text += (
            f"; its {', '.join(old)} {'has' if len(old) == 1 else 'have'} the temporal format of before 5.6, and the"
            " log does not say how many fraction digits that has: with mysql56_temporal_format=ON, ALTER the table"
        )
    return _error(block, schema, int(events[problem.event]), problem.byte, problem_text)


def _error(block: Block, schema: TableSchema, event: int, byte: int, problem_text: str) -> BinlogError:
    """Return the error for a byte of the block that lies in this event."""
    data, starts, sizes = block.raw
    start, size = int(starts[event]), int(sizes[event])
    inside = byte - start
    offset = int(block.column("position")[event]) + inside * int(block.column("span")[event]) // size
    position = Position(block.file, offset, epoch=block.epoch)
    return event_error(
        block.column("kind")[event], problem_text, data[byte : start + size].data, table=schema.name, position=position
    )
