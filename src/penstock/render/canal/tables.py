"""What is the same in all rows of a table: the bytes before and after the value of each column."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.canal import protobuf
from penstock.canal.schema import number_of
from penstock.model import Column, TableName, TableSchema
from penstock.render.canal.row_kernels import FRAMES
from penstock.render.canal.values import CanalValueWriter

_INDEX, _SQL_TYPE, _NAME, _IS_KEY, _MYSQL_TYPE = (
    number_of("Column", name) for name in ("index", "sqlType", "name", "isKey", "mysqlType")
)
_SCHEMA_NAME, _TABLE_NAME = number_of("Header", "schemaName"), number_of("Header", "tableName")


@dataclass(frozen=True, slots=True, eq=False)
class TableEncoding:
    """Describes how rows of one table version are encoded: its columns, and the constant bytes around each column's
    value. Tables that differ in their names only share it.

    The frames of column i begin at number `FRAMES * i`.
    """

    table: TableSchema  # one of them
    columns: tuple[Column, ...]  # that are shown
    frames: NDArray[np.int64]  # bounds
    frame_texts: NDArray[np.uint8]
    program: int = -1  # of the table among those of its client; -1: it is decoded by itself


class TablePlan(NamedTuple):
    """What is known of one table of a client: what is the same in its rows, and what headers say of it.

    There is one for each of thousands of tables: it is made of as little as possible.
    """

    encoding: TableEncoding
    program: int  # of the encoding
    name: TableName
    header: bytes  # the names, as the header of an entry has them

    @property
    def table(self) -> TableSchema:
        """Return the schema of the table."""
        return self.encoding.table.with_name(self.name)


def plan_table_encoding(
    table: TableSchema, columns: Sequence[Column], declared: Sequence[str], values: CanalValueWriter
) -> TableEncoding:
    """Build the encoding of a table; `declared` has the declared type of each of its columns."""
    frames = list[bytes]()
    for index, column in enumerate(table.columns):
        if column in columns:
            types, is_key = values.sql_types(column), column.name in table.key
            frames += [_column_head(index, sql_type, column.name, is_key=is_key) for sql_type in types.all]
            frames.append(protobuf.encode_text(_MYSQL_TYPE, declared[index]))
    return TableEncoding(table, tuple(columns), *join_bytes(frames))


def list_frames(plan: TableEncoding) -> list[bytes]:
    """Return FRAMES byte strings for every column of the table; those of a column that is not shown are empty."""
    raw, bounds, shown = plan.frame_texts.tobytes(), plan.frames.tolist(), {column.name for column in plan.columns}
    frames = (raw[first:stop] for first, stop in pairwise(bounds))
    return [next(frames) if column.name in shown else b"" for column in plan.table.columns for _ in range(FRAMES)]


def _column_head(index: int, sql_type: int, name: str, *, is_key: bool) -> bytes:
    """Encode the fields of a Column that come before its value."""
    head = protobuf.encode_number(_INDEX, index) + protobuf.encode_number(_SQL_TYPE, sql_type)
    return head + protobuf.encode_text(_NAME, name) + protobuf.encode_number(_IS_KEY, is_key)


def encode_names(name: TableName) -> bytes:
    """Encode schema and table name as the fields of an entry's header."""
    return protobuf.encode_text(_SCHEMA_NAME, name.schema) + protobuf.encode_text(_TABLE_NAME, name.table)


def join_bytes(texts: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return the byte strings as one array, and the bounds of each in it."""
    bounds = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return bounds, np.frombuffer(b"".join(texts), np.uint8)
