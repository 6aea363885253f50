"""Rows events of one table version → Arrow arrays, column by column."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import event_name
from penstock.binlog.rows.locate import ENDS_EARLY, OTHER_COLUMN_COUNT, locate
from penstock.binlog.rows.located import Layout, Located
from penstock.binlog.values.column import DEFAULT, Decoding, wire_of
from penstock.binlog.values.decode import Fields, decode_column
from penstock.binlog.values.problem import ValueProblemError
from penstock.errors import BinlogError
from penstock.model import TableSchema, WireType

_EXTRACT_BYTES = 24
_OLD = {WireType.TIME, WireType.DATETIME, WireType.TIMESTAMP}


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Row images with the columns that were asked for."""

    columns: dict[str, pa.Array]
    located: Located
    events: NDArray[np.int64]  # index in the block of each event that `located.event` counts


@lru_cache(maxsize=12_000)
def _layout(schema: TableSchema, names: frozenset[str]) -> Layout:
    wires = [wire_of(column) for column in schema.columns]
    return Layout.of(
        np.array([(wire.length_bytes, wire.width) for wire in wires], np.int64).reshape(-1, 2),
        np.array([column.name in names for column in schema.columns], np.bool_),
        np.array([column.type is WireType.JSON for column in schema.columns], np.bool_),
    )


def decode_rows(
    block: Block, events: NDArray[np.int64], schema: TableSchema, names: Sequence[str], choice: Decoding = DEFAULT
) -> Rows:
    """Decode the columns `names` (all known to `schema`) of the rows events at these indexes of the block."""
    data, starts, sizes = block.raw
    starts = starts[events]
    ends = starts + sizes[events] - block.column("checksum")[events]
    found = locate(data, starts, ends, _layout(schema, frozenset(names)))
    if not isinstance(found, Located):
        raise _locate_error(block, events, schema, *found)
    if found.is_whole and "MariaDB" in block.server_version and _OLD & {column.type for column in schema.columns}:
        _check_old_rows(block, events, schema, found)
    if block.server_version.startswith("5.7"):
        choice = replace(choice, json_doubles="1")
    rows = Rows({}, found, events)
    wanted = frozenset(names)
    chosen = [column for column in schema.columns if column.name in wanted]
    for line, column in enumerate(chosen):
        fields = Fields(
            data,
            found.offsets(line),
            found.lengths(line),
            int(found.missing[line]),
            found.partial[line] if found.partial.size else found.partial.reshape(-1),
        )
        try:
            rows.columns[column.name] = decode_column(column, choice, fields)
        except ValueProblemError as problem:
            event = int(events[found.event[problem.row]])
            at = problem.byte if problem.byte is not None else int(found.offsets(line)[problem.row])
            where = _place(block, event, at)
            extract = _extract(block, event, at)
            kind = event_name(int(block.column("kind")[event]))
            raise BinlogError(
                f"{where} {kind} of {schema.name}: column {column.name} {problem.what}; bytes there: {extract}"
            ) from None
    return rows


def _check_old_rows(block: Block, events: NDArray[np.int64], schema: TableSchema, found: Located) -> None:
    """The log does not say how wide a time in an old format with a fraction is.

    MariaDB sets the bits that fill up a null bitmap: where they are not set, rows were cut at wrong places.
    """
    data, columns = block.raw[0], len(schema.columns)
    filling = 0xFF << columns % 8 & 0xFF if columns % 8 else 0
    last = data[found.start + (columns - 1) // 8]
    wrong = last & filling != filling
    if wrong.any():
        row = int(np.argmax(wrong))
        raise _locate_error(block, events, schema, ENDS_EARLY, int(found.start[row]), int(found.event[row]))


def _place(block: Block, event: int, byte: int) -> str:
    """File and offset of a byte of the block."""
    _, starts, sizes = block.raw
    inside = byte - int(starts[event])
    position, span = int(block.column("position")[event]), int(block.column("span")[event])
    return f"{block.file}:{position + inside * span // int(sizes[event])}"


def _extract(block: Block, event: int, byte: int) -> str:
    data, starts, sizes = block.raw
    return bytes(data[byte : min(byte + _EXTRACT_BYTES, int(starts[event] + sizes[event]))]).hex(" ")


def _locate_error(
    block: Block, events: NDArray[np.int64], schema: TableSchema, error: int, where: int, event: int
) -> BinlogError:
    inside = int(events[event])
    what = (
        f"the event has another number of columns than the {len(schema.columns)} of its table map"
        if error == OTHER_COLUMN_COUNT
        else "a row reaches over the end of its event"
    )
    kind = event_name(int(block.column("kind")[inside]))
    extract = _extract(block, inside, where)
    return BinlogError(f"{_place(block, inside, where)} {kind} of {schema.name}: {what}; bytes there: {extract}")
