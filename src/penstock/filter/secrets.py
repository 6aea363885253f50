"""Passwords in the statements of a block are overwritten before the block is put into a store.

The events keep their size and their position, so that nothing else of the block changes but a checksum.
"""

import zlib
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import CHECKSUM
from penstock.binlog.events.query import parse_query_at, text_span
from penstock.schema.ddl import classify_statement_text
from penstock.schema.ddl.secret import mask_secrets_in_place, may_have_secrets
from penstock.schema.dialect import ServerProfile, SqlDialect, SqlMode, SqlSession

_BYTES = "latin-1"  # each byte is one character: what is ASCII of a statement is where it was


def mask_secrets_in_block(block: Block, statements: NDArray[np.bool_]) -> Block:
    """Return the block with passwords and their hashes masked in these statement events; the same block where there are
    none."""
    data: NDArray[np.uint8] | None = None
    _, starts, sizes = block.raw
    for event in np.flatnonzero(statements).tolist():
        query = parse_query_at(block, event)
        dialect = SqlDialect(
            ServerProfile.from_version_text(block.server_version), SqlSession(SqlMode(query.sql_mode or 0))
        )
        kind = classify_statement_text(query.text, dialect)
        if not may_have_secrets(kind):
            continue
        first, stop = text_span(block, event)
        text = block.data[first:stop].tobytes().decode(_BYTES)
        masked = mask_secrets_in_place(text, kind, dialect)
        if masked == text:
            continue
        data = block.data.copy() if data is None else data
        data[first:stop] = np.frombuffer(masked.encode(_BYTES), np.uint8)
        if block.column("checksum")[event] == CHECKSUM:
            end = int(starts[event] + sizes[event])
            checksum = zlib.crc32(data[starts[event] : end - CHECKSUM].tobytes())
            data[end - CHECKSUM : end] = np.frombuffer(checksum.to_bytes(CHECKSUM, "little"), np.uint8)
    return block if data is None else replace(block, data=data, checksum=None)
