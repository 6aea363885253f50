"""Writes docs/types.md from the one table of types, so that it cannot say anything else."""

from pathlib import Path

from penstock.binlog.values.type_table import TYPES

HEAD = """# Column types

Made by `tools/make_types_doc.py` from `binlog/values/type_table.py`.

Two Arrow or Spark types are for signed and unsigned columns. The last two columns are what canal's protocol says of
such a column: a number of `java.sql.Types`, and an example of the declared type.

"""
TAIL = """
## Choices and limits

- **Dates that no calendar has** (0000-00-00, 2024-00-10, 2023-02-31): null, or `text` (the whole column is text as
  the server prints it), or `error`: `read_binlog(..., dates="text")`.
- **ENUM and SET** are labels; `labels="number"` gives the number or the bits. A log without labels (MySQL 5.7,
  `binlog_row_metadata=MINIMAL`) gives numbers; so do the first releases of MySQL 8.0 for labels that are not UTF-8,
  since they do not log the charset of labels.
- **Text** is UTF-8 whatever the column's charset. What the server cannot convert either becomes U+FFFD. Without a
  charset in the log (MySQL 5.7, MariaDB with `NO_LOG`) CHAR, VARCHAR and TEXT cannot be told from BINARY, VARBINARY
  and BLOB, and are bytes.
- **Columns without names** are called `@1`, `@2` … Integers without signedness are signed. `known=` (a table's
  shape, for example from the live server) completes all this.
- **Absent is not null**: a minimal row image leaves columns out. They are null, and `_absent` lists them. MariaDB 11
  leaves generated columns out of updates and deletes, also with `binlog_row_image=FULL`.
- **Partial JSON updates** are applied to the before image. Where that does not carry the document
  (`binlog_row_image=MINIMAL`), neither the old nor the new one is in the log, only what was changed. A typed reader
  (`read_binlog`, Spark, Flight with one table) stops there with an error, because the value would be missing from it
  silently. Reading continues with other columns, or with `partial_json="operations"` (Spark: the option
  `partialJson`): then the column is null, listed in `_absent` and `_changed`, and `_partial` has the operations, a
  list of `column`, `op` (`replace`, `insert`, `array_insert`, `remove`), `path` and `value` (JSON text), in the order
  in which they apply.
  Rows as JSON over Flight and all formats of `penstock binlog` have the operations anyway; canal's clients get the
  expression that canal gives them, `JSON_REPLACE(j, '$.a', 4)`. Index sync reads documents back and needs none of it.
- **Hidden columns** in which MariaDB keeps the hashes of unique keys over a BLOB or TEXT (`DB_ROW_HASH_1` …) are in
  the log's rows, and are given to nobody.
- **UUID, INET4 and INET6 of MariaDB** lie in the log as BINARY(16) and BINARY(4) without a mark: they are text
  where the reader knows the declared type (Spark streams and `--host` do), else bytes. So do its vectors, as
  VARBINARY: they are lists of numbers where the type is known.
- **Times in the format of before 5.6** with fraction digits (`mysql56_temporal_format=OFF` of MariaDB) are refused
  where they can be noticed: the log does not say how wide they are.
"""


def render() -> str:
    head = ("type", "in the log", "Arrow", "Spark", "text", "sqlType", "mysqlType")
    lines = [
        (row.name, row.wire, row.arrow, row.spark, f"`{row.text}`", str(row.sql_type), f"`{row.mysql_type}`")
        for row in TYPES
    ]
    table = ["| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *lines)]
    return HEAD + "\n".join(table) + "\n" + TAIL


if __name__ == "__main__":
    Path("docs/types.md").write_text(render(), encoding="utf-8")
