"""A table's present shape from the source's own catalogue, in the same words as the log's table maps.

For starting a reader and checking a document spec. Rows of the log are decoded by the table map beside them,
never by this.
"""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

from penstock.errors import SchemaError
from penstock.model import Column, TableName, TableSchema, WireType
from penstock.schema.shape import fold

_TYPES = {
    "tinyint": WireType.TINY, "smallint": WireType.SHORT, "mediumint": WireType.INT24, "int": WireType.LONG,
    "bigint": WireType.LONGLONG, "float": WireType.FLOAT, "double": WireType.DOUBLE, "decimal": WireType.NEWDECIMAL,
    "date": WireType.DATE, "time": WireType.TIME2, "datetime": WireType.DATETIME2, "timestamp": WireType.TIMESTAMP2,
    "year": WireType.YEAR, "bit": WireType.BIT, "json": WireType.JSON, "enum": WireType.ENUM, "set": WireType.SET,
    "char": WireType.STRING, "binary": WireType.STRING, "varchar": WireType.VARCHAR, "varbinary": WireType.VARCHAR,
    "tinytext": WireType.BLOB, "text": WireType.BLOB, "mediumtext": WireType.BLOB, "longtext": WireType.BLOB,
    "tinyblob": WireType.BLOB, "blob": WireType.BLOB, "mediumblob": WireType.BLOB, "longblob": WireType.BLOB,
    "uuid": WireType.STRING, "inet4": WireType.STRING, "inet6": WireType.STRING,
}  # fmt: skip
_BLOB_LENGTH_BYTES = {"tiny": 1, "text": 2, "blob": 2, "medi": 3, "long": 4}
_DECLARED = {"uuid": 16, "inet4": 4, "inet6": 16}  # what the log does not tell from BINARY of that size
_STORED = {WireType.JSON: 4, WireType.GEOMETRY: 4, WireType.VECTOR: 4, WireType.FLOAT: 4, WireType.DOUBLE: 8}
_COMPRESSED = {WireType.VARCHAR: WireType.VARCHAR_COMPRESSED, WireType.BLOB: WireType.BLOB_COMPRESSED}
_ESCAPE = re.compile(r"\\(.)|''", re.DOTALL)
_MEANT = {"n": "\n", "r": "\r", "0": "\0", None: "'"}
_LABEL = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)


def logs_column_names(cursor: Any) -> bool:
    """Return whether a server writes the names of columns and labels into its log (binlog_row_metadata=FULL)."""
    cursor.execute("SHOW GLOBAL VARIABLES LIKE 'binlog_row_metadata'")
    return "FULL" in (cursor.fetchone() or ())


def check_letter_case(cursor: Any, tables: Sequence[TableName]) -> None:
    """Raise SchemaError for a table that is written in other letters than the log has: a server with
    lower_case_table_names=1 finds it, but its changes come under the name in lower case."""
    if are_in_lower_case(tables):
        return
    cursor.execute("SELECT @@GLOBAL.lower_case_table_names")
    ((case,),) = cursor.fetchall()
    for table in tables:
        if int(case) == 1 and (logged := _in_lower_case(table)) != table:
            raise SchemaError(f"the source has {table} as {logged} (lower_case_table_names=1): write it in lower case")


def are_in_lower_case(tables: Sequence[TableName]) -> bool:
    """Return whether no table is written with capital letters: then `check_letter_case` has nothing to ask."""
    return all(_in_lower_case(table) == table for table in tables)


def _in_lower_case(table: TableName) -> TableName:
    return TableName(fold(table.schema), fold(table.table))


def read_live_schema(cursor: Any, table: TableName) -> TableSchema:
    """Return the schema that a table has now, read from the server's information_schema, as a table map of the log
    describes it."""
    cursor.execute(
        "SELECT column_name, data_type, column_type, is_nullable, numeric_precision, numeric_scale,"
        " datetime_precision, character_set_name, character_octet_length FROM information_schema.columns"
        " WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
        (table.schema, table.table),
    )
    rows = cursor.fetchall()
    # To MariaDB a VECTOR is a VARBINARY, in the log too; MySQL has a type for it.
    has_vectors = any(row[1].lower() == "vector" for row in rows)
    vector = WireType.VARCHAR if has_vectors and _is_mariadb(cursor) else WireType.VECTOR
    columns = tuple(_column(*row, vector=vector) for row in rows)
    if not columns:
        raise SchemaError(f"there is no table {table} that this user can see")
    cursor.execute(
        "SELECT column_name FROM information_schema.key_column_usage"
        " WHERE table_schema = %s AND table_name = %s AND constraint_name = 'PRIMARY' ORDER BY ordinal_position",
        (table.schema, table.table),
    )
    key = tuple(name for (name,) in cursor.fetchall())
    return TableSchema(table, (*columns, *_hashes(cursor, table, columns)), key)


def _hashes(cursor: Any, table: TableName, columns: Sequence[Column]) -> list[Column]:
    """Return the hidden columns in which MariaDB stores the hashes of long unique keys; they are in the rows of the
    log."""
    cursor.execute(
        "SELECT COUNT(DISTINCT s.index_name) FROM information_schema.statistics s"
        " JOIN information_schema.tables t ON t.table_schema = s.table_schema AND t.table_name = s.table_name"
        " WHERE s.table_schema = %s AND s.table_name = %s AND s.index_type = 'HASH' AND s.non_unique = 0"
        " AND s.index_name <> 'PRIMARY' AND t.engine IN ('InnoDB', 'Aria', 'MyISAM') AND VERSION() LIKE '%%MariaDB%%'",
        (table.schema, table.table),
    )
    ((count,),) = cursor.fetchall()
    taken = {column.name.casefold() for column in columns}
    names = (name for i in range(1, 1 + count + len(columns)) if (name := f"DB_ROW_HASH_{i}").casefold() not in taken)
    return [
        Column(name, WireType.LONGLONG, unsigned=True, is_visible=False, is_hidden=True)
        for name in islice(names, count)
    ]


def _is_mariadb(cursor: Any) -> bool:
    cursor.execute("SELECT VERSION()")
    return "MariaDB" in str((cursor.fetchone() or ("",))[0])


def _column(
    name: str,
    data_type: str,
    column_type: Any,
    is_nullable: str,
    precision: int | None,
    scale: int | None,
    fraction: int | None,
    charset: str | None,
    octets: int | None,
    *,
    vector: WireType,
) -> Column:
    kind = data_type.lower()
    wire = vector if kind == "vector" else _TYPES.get(kind, WireType.GEOMETRY)
    is_declared = kind in _DECLARED or (kind == "vector" and wire is WireType.VARCHAR)
    text = column_type.decode() if isinstance(column_type, bytes) else str(column_type)
    if "COMPRESSED" in text:
        wire = _COMPRESSED.get(wire, wire)
    is_text = wire in (WireType.VARCHAR, WireType.STRING, WireType.BLOB, *_COMPRESSED.values())
    labels = _labels(text) if kind in {"enum", "set"} else ()
    return Column(
        name,
        wire,
        size=_size(wire, kind, labels, precision, fraction, octets),
        precision=int(precision or 0) if wire is WireType.NEWDECIMAL else 0,
        scale=int(scale or 0) if wire is WireType.NEWDECIMAL else 0,
        unsigned="unsigned" in text.lower().split("(")[-1] and not labels,
        nullable=is_nullable == "YES",
        charset=(charset or "binary") if is_text else charset or "" if labels else "",
        labels=labels,
        declared=kind if is_declared else "",
    )


def _labels(text: str) -> tuple[str, ...]:
    return tuple(_ESCAPE.sub(lambda match: _MEANT.get(match[1], match[1]), label) for label in _LABEL.findall(text))


def _size(  # noqa: PLR0911 - one per kind of type
    wire: WireType,
    kind: str,
    labels: tuple[str, ...],
    precision: int | None,
    fraction: int | None,
    octets: int | None,
) -> int:
    if wire in (WireType.TIME2, WireType.DATETIME2, WireType.TIMESTAMP2):
        return int(fraction or 0)
    if wire in (WireType.BLOB, WireType.BLOB_COMPRESSED):
        return _BLOB_LENGTH_BYTES[kind[:4]]
    if wire in _STORED:
        return _STORED[wire]
    if wire is WireType.ENUM:
        return 1 if len(labels) < 256 else 2
    if wire is WireType.SET:
        return 8 if len(labels) > 32 else (len(labels) + 7) // 8
    if wire is WireType.VARCHAR_COMPRESSED:
        return int(octets or 0) + 1
    if kind in _DECLARED:
        return _DECLARED[kind]
    if kind == "bit":
        return int(precision or 1)
    return min(int(octets or 0), 65535)
