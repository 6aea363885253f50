"""A mutant read to its end by all ways in: only `BinlogError` may come out of it, and it must say where and what.

A `SchemaError` is for tables that are not what somebody expects. It may only come where the mutation made a table
another one, and from a command that cannot do without what the log does not say, such as names.
"""

import re
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from penstock.binlog.events.block import Block
from penstock.binlog.events.bodies import parse_body
from penstock.binlog.events.file import LogFile
from penstock.binlog.events.reader import BlockReader
from penstock.binlog.events.table_map import table_name
from penstock.binlog.rows.changes import decode_changes
from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.errors import BinlogError, SchemaError
from penstock.model import Position, TableName
from tests.campaign.command import run_command
from tests.campaign.logs import HEADER, TABLE_MAP, source_logs
from tests.campaign.mutant import Mutant
from tests.campaign.payload import opened
from tests.twins.event import MAGIC
from tests.twins.feed import feed

# File and offset, type, what is wrong, bytes. A mutant may have its own file name.
_SAYS_ALL = re.compile(
    r".*:\d+ (?:[A-Z_0-9]+|event type \d+)(?: of .+?)?: .+; bytes there: (?:[0-9a-f ]*|none)", re.DOTALL
)
_NO_BYTES = "has no `_seq`"  # it is not the bytes that are wrong there


def outcome_of(mutant: Mutant) -> str:
    """`whole` or the name of the first error of ours; any other exception comes out."""
    outcome = "whole"
    try:
        for block in _blocks(mutant):
            for error in (*_errors_of_events(block), *_errors_of_rows(block, mutant)):
                outcome = error if outcome == "whole" else outcome
    except BinlogError as error:
        outcome = _checked(error) if outcome == "whole" else outcome
    if mutant.command is not None:
        try:
            run_command(mutant.command, _written(mutant), verify=mutant.verify)
        except (BinlogError, SchemaError) as error:
            outcome = type(error).__name__ if outcome == "whole" else outcome
    return outcome


def _checked(error: BinlogError) -> str:
    assert _SAYS_ALL.fullmatch(str(error)) or _NO_BYTES in str(error), f"the error does not say all: {error}"
    return type(error).__name__


def _blocks(mutant: Mutant) -> Iterator[Block]:
    if mutant.is_file:
        yield from LogFile(_written(mutant), verify=mutant.verify)
        return
    start = Position("binlog.000001", len(MAGIC))
    reader = BlockReader(start, verify=mutant.verify, block_bytes=mutant.block_bytes)
    yield from feed(reader, mutant.data[len(MAGIC) :], mutant.pieces)


def _written(mutant: Mutant) -> Path:
    path = _folder() / "binlog.000001"
    path.write_bytes(mutant.data)
    return path


@cache
def _folder() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="penstock-campaign-")
    _kept.append(folder)
    return Path(folder.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []


def _errors_of_events(block: Block) -> Iterator[str]:
    data, starts, sizes = block.raw
    ends = starts + sizes - block.column("checksum")
    for i, kind in enumerate(block.column("kind").tolist()):
        try:
            parse_body(kind, data[starts[i] + HEADER : ends[i]].tobytes())
        except BinlogError as error:
            yield _checked(BinlogError(f"{block.end_of_event(i)} {error}"))


def _errors_of_rows(block: Block, mutant: Mutant) -> Iterator[str]:
    """Decode all tables of the block; one that cannot be decoded does not spare the others."""
    for number, body in block.tables.items():
        name = table_name(body)
        try:
            fields = arrow_fields_of_table(block.schema_of(number), choice=mutant.choice)
            for batch in decode_changes(block, name, fields, mutant.choice):
                batch.validate(full=True)
        except BinlogError as error:
            yield _checked(error)
        except SchemaError as error:
            if not _is_another_table(block, name):
                raise
            yield type(error).__name__


def _is_another_table(block: Block, name: TableName) -> bool:
    """Is it described otherwise than in its log, or twice?"""
    bodies = {body[6:] for body in block.tables.values() if table_name(body) == name}
    return len(bodies) > 1 or not bodies <= _table_maps()


@cache
def _table_maps() -> frozenset[bytes]:
    """Those of the logs, without their table ids."""
    events = [event for log in source_logs() for transaction in log.transactions for event in transaction]
    events += [bytes(inner) for event in events for inner in opened(event) or ()]
    return frozenset(event[HEADER + 6 :] for event in events if event[4] == TABLE_MAP)
