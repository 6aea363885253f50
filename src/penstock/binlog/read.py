"""`penstock.read_binlog`: the changes of one table in log files as an Arrow table."""

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal

import pyarrow as pa

from penstock.binlog.events.file import LogFile
from penstock.binlog.events.table_map import table_name
from penstock.binlog.rows.changes import changes_of
from penstock.binlog.rows.fields import CHANGE_FIELDS, table_fields
from penstock.binlog.values.column import Decoding
from penstock.errors import SchemaError
from penstock.model import TableName, TableSchema

Paths = str | PathLike[str] | Iterable[str | PathLike[str]]


def read_binlog(
    path: Paths,
    table: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    dates: Literal["null", "text", "error"] = "null",
    labels: Literal["text", "number"] = "text",
    known: TableSchema | None = None,
    verify: bool = True,
) -> pa.Table:
    """Row changes of `table` (as `database.table`) in log order: its columns, then `_change_type`, `_seq` and so on.

    `path` is one file or several, in their order. Without `table` the files must hold rows of one table only.
    `dates` says what a date becomes that no calendar has, `labels` what an ENUM or SET becomes, `known` what the log
    does not say of the table, and `verify` whether checksums are verified. A table that was altered within the files
    is read as far as its columns keep their types.

    >>> penstock.read_binlog("binlog.000007", "shop.product").filter(pc.field("_change_type") == "delete")
    """
    paths = [Path(path)] if isinstance(path, (str, PathLike)) else [Path(one) for one in path]
    choice = Decoding(dates, labels)
    wanted = TableName.parse(table) if table else None
    fields: pa.Schema | None = None
    batches: list[pa.RecordBatch] = []
    for one in paths:
        for block in LogFile(one, verify=verify):
            for number, body in block.tables.items():
                name = table_name(body)
                wanted = wanted or name
                if name != wanted and table is None:
                    raise SchemaError(f"{one} holds rows of {wanted} and {name}: say which with table=")
                if name == wanted and fields is None:
                    shape = block.schema_of(number)
                    fields = table_fields(shape.completed(known) if known else shape, columns, choice)
            if wanted is not None and fields is not None:
                batches += changes_of(block, wanted, fields, 0, choice, known)
    if fields is None:
        what = f"no rows of {wanted}" if wanted else "no rows"
        raise SchemaError(f"there are {what} in {', '.join(map(str, paths)) or 'no file'}")
    return pa.Table.from_batches(batches, pa.schema([*fields, *CHANGE_FIELDS]))
