"""A process that decodes log files on demand: a path on a line in, seconds and rows as JSON on a line out.

It has a process of its own so that it, and every thread of its libraries, is on one core from the start.
"""

import json
import sys
import time
from itertools import islice
from pathlib import Path

import pyarrow as pa

from penstock.binlog.events.file import LogFile
from penstock.binlog.events.table_map import table_name
from penstock.binlog.rows.changes import changes_of
from penstock.binlog.rows.fields import table_fields
from penstock.errors import BinlogError, SchemaError
from penstock.model import TableName


def decode_everything(path: Path, blocks: int | None = None) -> int:
    """All columns of all row images to Arrow, with checksums verified; gives how many images there were."""
    fields: dict[TableName, pa.Schema] = {}
    rows = 0
    for block in islice(LogFile(path), blocks):
        for number, body in block.tables.items():
            name = table_name(body)
            if name not in fields:
                fields[name] = table_fields(block.schema_of(number))
        for name, chosen in fields.items():
            rows += sum(batch.num_rows for batch in changes_of(block, name, chosen, 0))
    return rows


def _answer(path: Path) -> dict[str, int | float | str]:
    try:
        decode_everything(path, 2)  # what a kernel loads on its first call is not part of the time
        began, before = time.perf_counter(), time.process_time()
        rows = decode_everything(path)
        return {"rows": rows, "seconds": time.perf_counter() - began, "cpu": time.process_time() - before}
    except (BinlogError, SchemaError) as error:
        return {"error": str(error)}


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(_answer(Path(line.rstrip("\n")))), flush=True)


if __name__ == "__main__":
    main()
