"""Names and values as SQL that restores them exactly, on MySQL and MariaDB, with the settings of PREAMBLE."""

from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.binlog.arrays import compute as pc
from penstock.model import Column, TableName, WireType
from penstock.render import text
from penstock.render.dialect import Dialect, server_reals, vector_bytes
from penstock.render.operations import call_functions
from penstock.render.weave import Written

if TYPE_CHECKING:
    from penstock.binlog.values.json_operations import JsonOperations

SQL_MODE = "SQL_MODE='STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'"
PREAMBLE = f"SET NAMES utf8mb4;\nSET TIME_ZONE='+00:00';\nSET {SQL_MODE};\n"
_ESCAPES = text.Escapes.of({"'": "''", "\\": "\\\\", "\0": "\\0", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1a": "\\Z"})
_TEXTS = {
    WireType.VARCHAR, WireType.STRING, WireType.BLOB, WireType.VARCHAR_COMPRESSED, WireType.BLOB_COMPRESSED,
    WireType.JSON,
}  # fmt: skip


def name_text(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def table_text(table: TableName) -> str:
    return f"{name_text(table.schema)}.{name_text(table.table)}"


def call_sql_functions(operations: "JsonOperations", column: Column) -> pa.Array:
    """What a document becomes by operations on it, with the values of the types that they have in the log."""
    paths = text.escaped(operations.paths, _ESCAPES)
    return call_functions(operations, name_text(column.name), paths, operations.sql_values)


class SqlValues(Dialect):
    """To be stored."""

    null = "NULL"

    def real(self, array: pa.Array) -> Written:
        """With an exponent, so that it is read as a float and not as a decimal: -0e0 keeps its sign."""
        texts = server_reals(array)
        has_exponent = pc.match_substring(texts, "e")
        return Written(pc.if_else(has_exponent, texts, text.join(texts, "e0")), self.null)

    def year(self, array: pa.Array) -> Written:
        """Four digits in quotes: 0 as a number may become 2000."""
        return Written(pc.utf8_lpad(text.plain(array), 4, "0"), self.null, "'", "'")

    def text(self, array: pa.Array) -> Written:
        return Written(text.escaped(array, _ESCAPES), self.null, "'", "'")

    def binary(self, array: pa.Array) -> Written:
        return Written(text.hexed(array), self.null, "X'", "'")

    def printable(self, array: pa.Array) -> Written:
        """Write bytes as text with an introducer, so that the server stores them unchanged in any charset."""
        return Written(text.escaped(array, _ESCAPES), self.null, "_binary'", "'")

    def moment(self, array: pa.Array, column: Column) -> Written:  # noqa: ARG002 - quotes do for all of them
        return Written(text.plain(array), self.null, "'", "'")

    def bits(self, array: pa.Array, width: int) -> Written:
        return Written(text.bits(array, width), self.null, "b'", "'")

    def vector(self, array: pa.Array) -> Written:
        return self.binary(vector_bytes(array))


class SqlMatches(SqlValues):
    """To be found: compared with what is stored."""

    def real(self, array: pa.Array) -> Written:
        """A FLOAT is compared as the DOUBLE that it is exactly."""
        return super().real(array.cast(pa.float64()))

    def bits(self, array: pa.Array, width: int) -> Written:  # noqa: ARG002 - a number has no width
        """Write BIT values as numbers: a server compares b'…' as a signed number and loses the highest bit."""
        return self.number(array)

    def left_side(self, column: Column, array: pa.Array) -> str:
        """Of a comparison that holds for this value only, not for all that a collation takes for equal."""
        name = name_text(column.name)
        if column.type is WireType.VECTOR:
            return f"CAST({name} AS BINARY)"
        # A document is compared as the text that servers print: JSON made of a text has no dates, bytes or decimals.
        is_text = pa.types.is_string(array.type) and column.type in _TEXTS and not column.declared
        return f"CAST(CONVERT({name} USING utf8mb4) AS BINARY)" if is_text else name
