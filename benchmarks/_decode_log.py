"""A process that decodes log files on demand: what to decode and a path on a line in, JSON on a line out.

`columns` is what `mysqlbinlog -v` prints: all columns of all row images. `changes` adds the columns that say what, when
and in which order: kind, position, time, GTID, what changed and what is absent. Checksums are verified in both.

It has a process of its own so that it, and every thread of its libraries, is on one core from the start.
"""

import json
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from penstock.binlog.events.block import Block
from penstock.binlog.events.file import LogFile
from penstock.binlog.events.layout import Entry
from penstock.binlog.rows.changes import decode_changes
from penstock.binlog.rows.decode import decode_rows
from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.cli.heap import keep_freed_memory
from penstock.errors import BinlogError, SchemaError


def columns(block: Block) -> Iterator[int]:
    events = np.flatnonzero(block.column("entry") == Entry.ROWS)
    ids = block.column("table_id")[events]
    for number in block.tables:
        table = block.schema_of(number)
        names = [column.name for column in table.columns]
        for rows in decode_rows(block, events[ids == number], table, names):
            yield rows.located.rows


def changes(block: Block) -> Iterator[int]:
    for number in block.tables:
        table = block.schema_of(number)
        for batch in decode_changes(block, table.name, arrow_fields_of_table(table)):
            yield batch.num_rows


DECODERS = {"columns": columns, "changes": changes}


def decode_everything(path: Path, decoder: str, blocks: int | None = None) -> int:
    """Gives how many row images there were."""
    return sum(sum(DECODERS[decoder](block)) for block in islice(LogFile(path), blocks))


def _answer(decoder: str, path: Path) -> dict[str, int | float | str]:
    try:
        decode_everything(path, decoder, 2)  # what a kernel loads on its first call is not part of the time
        began, before = time.perf_counter(), time.process_time()
        rows = decode_everything(path, decoder)
        return {"rows": rows, "seconds": time.perf_counter() - began, "cpu": time.process_time() - before}
    except (BinlogError, SchemaError) as error:
        return {"error": str(error)}


def main() -> None:
    keep_freed_memory()  # as the `penstock` command does
    for line in sys.stdin:
        decoder, path = line.rstrip("\n").split(" ", 1)
        print(json.dumps(_answer(decoder, Path(path))), flush=True)


if __name__ == "__main__":
    main()
