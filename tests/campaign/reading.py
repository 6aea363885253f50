"""A mutant read to its end by the public ways in: only `BinlogError` and `SchemaError` may come out of it."""

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from penstock.binlog.events.block import Block
from penstock.binlog.events.file import LogFile
from penstock.binlog.events.reader import BlockReader
from penstock.binlog.events.table_map import table_name
from penstock.binlog.rows.changes import changes_of
from penstock.binlog.rows.fields import table_fields
from penstock.errors import BinlogError, SchemaError
from penstock.model import Position
from tests.campaign.mutant import Mutant
from tests.twins.event import MAGIC
from tests.twins.feed import feed


def outcome_of(mutant: Mutant) -> str:
    """`whole` or the name of the first error of ours; any other exception comes out."""
    outcome = "whole"
    try:
        for block in _blocks(mutant):
            for error in _errors(block, mutant):
                outcome = error if outcome == "whole" else outcome
    except (BinlogError, SchemaError) as error:
        outcome = type(error).__name__ if outcome == "whole" else outcome
    return outcome


def _blocks(mutant: Mutant) -> Iterator[Block]:
    if mutant.is_file:
        path = _folder() / "binlog.000001"
        path.write_bytes(mutant.data)
        yield from LogFile(path, verify=mutant.verify)
        return
    start = Position("binlog.000001", len(MAGIC))
    reader = BlockReader(start, verify=mutant.verify, block_bytes=mutant.block_bytes)
    yield from feed(reader, mutant.data[len(MAGIC) :], mutant.pieces)


@cache
def _folder() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="penstock-campaign-")
    _kept.append(folder)
    return Path(folder.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []


def _errors(block: Block, mutant: Mutant) -> Iterator[str]:
    """Decode all tables of the block; one that cannot be decoded does not spare the others."""
    for number, body in block.tables.items():
        try:
            fields = table_fields(block.schema_of(number), choice=mutant.choice)
            for batch in changes_of(block, table_name(body), fields, 0, mutant.choice):
                batch.validate(full=True)
        except (BinlogError, SchemaError) as error:
            yield type(error).__name__
