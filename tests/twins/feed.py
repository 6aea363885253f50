"""A written log through the real reader, and its row changes as plain rows."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from penstock.binlog.events.block import Block
from penstock.binlog.events.reader import BlockReader
from penstock.binlog.rows.changes import decode_changes
from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.model import Position, TableSchema
from tests.twins.log import LogWriter

EPOCH = 3
START = Position("binlog.000001", 4)


def feed(
    reader: BlockReader, data: bytes, sizes: Iterable[int] = (), *, flush: bool = True, hold_trailing: bool = False
) -> Iterator[Block]:
    """Blocks, with these numbers of bytes at a time and then all the rest; flushed after each, or at the end."""
    pieces, at = iter(sizes), 0
    while at < len(data):
        piece = data[at : at + next(pieces, len(data))]
        reader.room(len(piece))[: len(piece)] = memoryview(piece)
        reader.advance(len(piece))
        at += len(piece)
        yield from reader.blocks(flush=flush or at == len(data), hold_trailing=hold_trailing)


def read(
    log: LogWriter,
    sizes: Iterable[int] = (),
    *,
    block_bytes: int = 1 << 16,
    flush: bool = True,
    hold_trailing: bool = False,
) -> list[Block]:
    """With `hold_trailing` also what waited to the end for something to come."""
    reader = BlockReader(START, block_bytes=block_bytes)
    reader.expect_checksum(is_on=log.is_checksummed)
    blocks = list(feed(reader, bytes(log.data), sizes, flush=flush, hold_trailing=hold_trailing))
    return [*blocks, *reader.blocks(flush=True)]


def rows_in(blocks: Iterable[Block], table: TableSchema, columns: list[str] | None = None) -> list[dict[str, Any]]:
    fields, rows = arrow_fields_of_table(table, columns), list[dict[str, Any]]()
    for block in blocks:
        for batch in decode_changes(replace(block, epoch=EPOCH), table.name, fields):
            batch.validate(full=True)
            rows += batch.to_pylist()
    return rows


def tables_of(log: LogWriter) -> dict[str, TableSchema]:
    return {image.table.name.table: image.table for image in log.images}
