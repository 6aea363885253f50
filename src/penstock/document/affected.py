"""Which documents a batch of changes touches, and with which version each is to be written.

Both images of a change count: a row that moved from one parent to another touches both.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.model import TableName


def find_changed_keys(
    changes: pa.Table, columns: Mapping[TableName, str], tables: Mapping[TableName, str]
) -> dict[TableName, dict[Any, int]]:
    """Return for each table the key values that changed, each with the highest `_seq` that touched it.

    `columns` names the struct column of each table in `changes`, `tables` the key column inside it.
    """
    keys_by_table: dict[TableName, dict[Any, int]] = {}
    for table, key in tables.items():
        own = changes.filter(pc.equal(changes.column("_table"), str(table)))
        if not own.num_rows:
            continue
        keys = pc.struct_field(own.column(columns[table]), key)
        highest = pa.table({"key": keys, "seq": own.column("_seq")}).group_by("key").aggregate([("seq", "max")])
        highest = highest.filter(pc.is_valid(highest.column("key")))
        keys_by_table[table] = dict(
            zip(highest.column("key").to_pylist(), highest.column("seq_max").to_pylist(), strict=True)
        )
    return keys_by_table
