"""The Arrow fields of changes of any table: one line per change, the row before and after it as JSON texts.

The names are those of `CHANGE_FIELDS` where they mean the same; what they say of an image, they say here of the last
image of the change: of the row after it, or for a delete of the row before it.
"""

import pyarrow as pa

from penstock.binlog.rows.fields import CHANGE_FIELDS

_FIRST = (
    pa.field("_change_type", pa.string()),  # insert, update, delete, ddl
    pa.field("_table", pa.string()),  # database.table
    pa.field("_key", pa.map_(pa.string(), pa.string())),  # column → text; null without a primary key
    pa.field("before", pa.string()),
    pa.field("after", pa.string()),
)
_DDL = pa.field("ddl", pa.string())  # the statement
_LAST = tuple(field for field in CHANGE_FIELDS if field.name != "_change_type")


def json_change_fields(*, include_ddl: bool) -> pa.Schema:
    """Return the Arrow schema of changes as JSON rows, with a column `ddl` if statements are to be lines too."""
    return pa.schema([*_FIRST, *((_DDL,) if include_ddl else ()), *_LAST])
