"""A log followed with its tables, and the rows that come out as a reader of the table sees them."""

from collections.abc import Iterator
from typing import Any

from penstock.binlog.events.block import Block
from penstock.binlog.events.table_map import table_name
from penstock.binlog.rows.changes import decode_changes_at, group_by_table_version
from penstock.binlog.rows.fields import CHANGE_FIELDS, arrow_fields_of_table
from penstock.binlog.values.column import DEFAULT
from penstock.capture.schema_tracker import SchemaTracker
from penstock.model import Position, TableName
from penstock.source import BinlogStream
from penstock.testing import DatabaseServer
from tests.support.capture import source_of

Row = dict[str, Any]


def blocks_between(server: DatabaseServer, start: Position, end: Position) -> Iterator[Block]:
    """Of the log as it is, with all that lies between two positions."""
    with BinlogStream(source_of(server), start) as stream:
        for block in stream:
            if block is not None and len(part := block.between(start, end)):
                yield part
            if (block.end if block is not None else stream.position) >= end:
                return


def followed(tables: SchemaTracker, server: DatabaseServer, start: Position, end: Position) -> list[Block]:
    return [tables.follow(block) for block in blocks_between(server, start, end)]


def rows_of(blocks: list[Block], table: TableName) -> list[Row]:
    """After-images, and before-images of deletes, in the order of the log."""
    return [row for block in blocks for row in _rows(block, table)]


def _rows(block: Block, table: TableName) -> Iterator[Row]:
    for events, shape in group_by_table_version(block, table):
        fields = arrow_fields_of_table(shape)
        for batch in decode_changes_at(block, events, shape, fields, DEFAULT):
            for row in batch.to_pylist():
                if row["_change_type"] != "update_preimage":
                    yield {name: value for name, value in row.items() if name not in CHANGE_FIELDS.names}


def tables_in(blocks: list[Block]) -> set[str]:
    return {table_name(body).table for block in blocks for body in block.tables.values()}


def selected(server: DatabaseServer, query: str) -> list[Row]:
    with server.connect(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(query)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
