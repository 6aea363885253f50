"""The Arrow fields of row changes: a table's own, and those that say what, when and in which order.

The first three names and meanings are those of Delta's change feed and of Spark's own change queries.
"""

from collections.abc import Sequence

import pyarrow as pa

from penstock.binlog.values.column import arrow_type
from penstock.errors import SchemaError
from penstock.model import TableSchema

CHANGE_FIELDS = pa.schema(
    [
        pa.field("_change_type", pa.string()),  # insert, update_preimage, update_postimage, delete
        pa.field("_commit_version", pa.int64()),  # the _seq of the transaction's first event
        pa.field("_commit_timestamp", pa.timestamp("us", "UTC")),  # the finest the log has
        pa.field("_seq", pa.int64()),  # order of all changes of an instance
        pa.field("_row", pa.int32()),  # number of the row image in its event
        pa.field("_gtid", pa.string()),
        pa.field("_file", pa.string()),
        pa.field("_offset", pa.int64()),  # of the row image in the file
        pa.field("_changed", pa.list_(pa.string())),  # on a postimage: which of the columns read differ
    ]
)


def table_fields(table: TableSchema, columns: Sequence[str] | None = None) -> pa.Schema:
    """Arrow fields of a table, all nullable: a minimal row image may leave any of them out."""
    unknown = set(columns or ()) - {column.name for column in table.columns}
    if unknown:
        known = ", ".join(column.name for column in table.columns)
        raise SchemaError(f"table {table.name} has no column {', '.join(sorted(unknown))}; it has {known}")
    chosen = [column for column in table.columns if columns is None or column.name in columns]
    return pa.schema([pa.field(column.name, arrow_type(column, table.name)) for column in chosen])
