"""Names and values as SQL that restores them exactly, on MySQL and MariaDB, with the settings of PREAMBLE."""

from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.binlog.arrays import compute as pc
from penstock.model import Column, TableName, WireType
from penstock.render import text
from penstock.render.dialect import ValueWriter, vector_bytes, write_server_floats
from penstock.render.operations import write_function_calls
from penstock.render.weave import FormattedColumn

if TYPE_CHECKING:
    from penstock.binlog.values.json_operations import JsonOperations

SQL_MODE = "SQL_MODE='STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'"
PREAMBLE = f"SET NAMES utf8mb4;\nSET TIME_ZONE='+00:00';\nSET {SQL_MODE};\n"
_ESCAPES = text.EscapeTable.from_mapping(
    {"'": "''", "\\": "\\\\", "\0": "\\0", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1a": "\\Z"}
)
_TEXTS = {
    WireType.VARCHAR, WireType.STRING, WireType.BLOB, WireType.VARCHAR_COMPRESSED, WireType.BLOB_COMPRESSED,
    WireType.JSON,
}  # fmt: skip


def quote_name(name: str) -> str:
    """Return an identifier in backquotes."""
    return f"`{name.replace('`', '``')}`"


def quote_table(table: TableName) -> str:
    """Return a table name as `schema`.`table`, in backquotes."""
    return f"{quote_name(table.schema)}.{quote_name(table.table)}"


def write_json_function_calls(operations: "JsonOperations", column: Column) -> pa.Array:
    """Write the SQL function calls that apply JSON operations to a document, with values of the types that they have in
    the log.
    """
    paths = text.escape_texts(operations.paths, _ESCAPES)
    return write_function_calls(operations, quote_name(column.name), paths, operations.sql_values)


class SqlValueWriter(ValueWriter):
    """Writes values as SQL literals that store exactly the same value."""

    null = "NULL"

    def write_floats(self, array: pa.Array) -> FormattedColumn:
        """Write floats with an exponent, so that they are read as floats and not as decimals: -0e0 keeps its sign."""
        texts = write_server_floats(array)
        has_exponent = pc.match_substring(texts, "e")
        return FormattedColumn(pc.if_else(has_exponent, texts, text.join_columns(texts, "e0")), self.null)

    def write_years(self, array: pa.Array) -> FormattedColumn:
        """Write years as four digits in quotes: 0 as a number may become 2000."""
        return FormattedColumn(pc.utf8_lpad(text.write_plain(array), 4, "0"), self.null, "'", "'")

    def write_texts(self, array: pa.Array) -> FormattedColumn:
        """Write texts as SQL strings."""
        return FormattedColumn(text.escape_texts(array, _ESCAPES), self.null, "'", "'")

    def write_binaries(self, array: pa.Array) -> FormattedColumn:
        """Write bytes as hexadecimal literals."""
        return FormattedColumn(text.write_hex(array), self.null, "X'", "'")

    def write_printable_texts(self, array: pa.Array) -> FormattedColumn:
        """Write bytes as text with an introducer, so that the server stores them unchanged in any charset."""
        return FormattedColumn(text.escape_texts(array, _ESCAPES), self.null, "_binary'", "'")

    def write_times(self, array: pa.Array, column: Column) -> FormattedColumn:  # noqa: ARG002 - quotes do for all of them
        """Write dates and times in quotes."""
        return FormattedColumn(text.write_plain(array), self.null, "'", "'")

    def write_bits(self, array: pa.Array, width: int) -> FormattedColumn:
        """Write BIT values as b'…' literals."""
        return FormattedColumn(text.write_bits(array, width), self.null, "b'", "'")

    def write_vectors(self, array: pa.Array) -> FormattedColumn:
        """Write vectors as the bytes that the server stores."""
        return self.write_binaries(vector_bytes(array))


class SqlMatchWriter(SqlValueWriter):
    """Writes values as SQL literals that are compared with stored values."""

    def write_floats(self, array: pa.Array) -> FormattedColumn:
        """Write a FLOAT as the DOUBLE that it is exactly, since servers compare it as that."""
        return super().write_floats(array.cast(pa.float64()))

    def write_bits(self, array: pa.Array, width: int) -> FormattedColumn:  # noqa: ARG002 - a number has no width
        """Write BIT values as numbers: a server compares b'…' as a signed number and loses the highest bit."""
        return self.write_integers(array)

    def comparison_start(self, column: Column, array: pa.Array) -> str:
        """Return the left side of a comparison that holds only for this value, not for all that a collation considers
        equal.
        """
        name = quote_name(column.name)
        if column.type is WireType.VECTOR:
            return f"CAST({name} AS BINARY)"
        # A document is compared as the text that servers print: JSON made of a text has no dates, bytes or decimals.
        is_text = pa.types.is_string(array.type) and column.type in _TEXTS and not column.declared
        return f"CAST(CONVERT({name} USING utf8mb4) AS BINARY)" if is_text else name
