"""What is the same in all rows of a table: the bytes before and after the value of each column."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.canal import protobuf
from penstock.model import Column, TableName, TableSchema
from penstock.render.canal.values import Values


@dataclass(frozen=True, slots=True, eq=False)
class TablePlan:
    """What frames column i is at `FRAMES * i`."""

    table: TableSchema
    columns: tuple[Column, ...]  # that are shown
    frames: NDArray[np.int64]  # bounds
    frame_texts: NDArray[np.uint8]


def plan_table(table: TableSchema, columns: Sequence[Column], declared: Sequence[str], values: Values) -> TablePlan:
    """`declared` has the type of each column of the table, as it was declared."""
    frames = list[bytes]()
    for index, column in enumerate(table.columns):
        if column in columns:
            types = values.types(column)
            for sql_type in (types.value, types.null, types.wide):
                frames.append(_head(index, sql_type, column.name, is_key=column.name in table.key))
            frames.append(protobuf.text(10, declared[index]))
    return TablePlan(table, tuple(columns), *joined(frames))


def _head(index: int, sql_type: int, name: str, *, is_key: bool) -> bytes:
    head = protobuf.number(1, index) + protobuf.number(2, sql_type) + protobuf.text(3, name)
    return head + protobuf.number(4, is_key)


def names_of(name: TableName) -> bytes:
    """As a header has them."""
    return protobuf.text(8, name.schema) + protobuf.text(9, name.table)


def joined(texts: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The bounds of each, and all of them one after the other."""
    bounds = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return bounds, np.frombuffer(b"".join(texts), np.uint8)
