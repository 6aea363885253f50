"""Completes the table maps of a block with the definitions that the schema history has of their tables."""

from dataclasses import dataclass

import numpy as np

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.binlog.events.table_map import parse_table_map
from penstock.errors import BinlogError, SchemaError
from penstock.model import Position, TableSchema
from penstock.model.table import is_nameless
from penstock.schema.catalogue import Catalogue
from penstock.schema.complete import complete_table_map, find_difference
from penstock.schema.declared import declared_types, declared_types_in_ddl
from penstock.schema.shape import TableDefinition


@dataclass(frozen=True, slots=True)
class CompletedMap:
    """A table map completed by the schema history: the body, why it cannot be completed, or how the log differs."""

    body: bytes
    problem: str = ""
    difference: str = ""


def complete_table_map_or_compare(body: bytes, table: TableDefinition, version: str) -> CompletedMap:
    """Complete a table map that has no column names from the tracked definition of the table. One that has names is
    compared with the definition; the result says how they differ."""
    if lacks_column_names(body, version):
        try:
            return CompletedMap(complete_table_map(body, table, version))
        except SchemaError as error:
            return CompletedMap(body, str(error))
    try:
        return CompletedMap(body, difference=find_difference(parse_table_map(body, version), table.schema))
    except (BinlogError, SchemaError):
        return CompletedMap(body)  # who decodes it meets the problem


def lacks_column_names(body: bytes, version: str) -> bool:
    """Return whether a table map does not name its columns; one that cannot be parsed counts as naming them."""
    try:
        return is_nameless(parse_table_map(body, version))
    except (BinlogError, SchemaError):
        return False


def declared_column_types(logged: TableSchema, catalogue: Catalogue | None, server_version: str) -> tuple[str, ...]:
    """Return the SQL types of a table's columns: from its DDL where that fits the log, else as far as the log tells."""
    table = catalogue.find(logged.name) if catalogue is not None else None
    if table is None or catalogue is None or find_difference(logged, table.schema):
        return declared_types(logged, server_version)
    return declared_types_in_ddl(table, catalogue.server)


def find_row_positions(block: Block) -> dict[int, tuple[Position, Position]]:
    """Return by table id the positions of its first and its last rows in a block."""
    events = np.flatnonzero(block.column("entry") == Entry.ROWS)
    ids, offsets = block.column("table_id")[events], block.column("position")[events]
    numbers, first = np.unique(ids, return_index=True)
    _, last = np.unique(ids[::-1], return_index=True)

    def position_at(offset: int) -> Position:
        """Return the position of an offset in the block's file."""
        return Position(block.file, offset, epoch=block.epoch)

    ends = zip(offsets[first].tolist(), offsets[::-1][last].tolist(), strict=True)
    return {
        number: (position_at(begin), position_at(end))
        for number, (begin, end) in zip(numbers.tolist(), ends, strict=True)
    }
