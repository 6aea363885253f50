"""What is the same in all rows of a table: the bytes before and after the value of each column."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from penstock.canal import protobuf
from penstock.model import Column, TableName, TableSchema
from penstock.render.canal.row_kernels import FRAMES
from penstock.render.canal.values import Values


@dataclass(frozen=True, slots=True, eq=False)
class TablePlan:
    """What frames column i is at `FRAMES * i`."""

    table: TableSchema
    columns: tuple[Column, ...]  # that are shown
    names: bytes  # of the table, as a header has them
    frames: NDArray[np.int64]  # bounds
    frame_texts: NDArray[np.uint8]
    program: int = -1  # of the table among those of its client; -1: it is decoded by itself


def plan_table(table: TableSchema, columns: Sequence[Column], declared: Sequence[str], values: Values) -> TablePlan:
    """`declared` has the type of each column of the table, as it was declared."""
    frames = list[bytes]()
    for index, column in enumerate(table.columns):
        if column in columns:
            types, is_key = values.types(column), column.name in table.key
            frames += [_head(index, sql_type, column.name, is_key=is_key) for sql_type in types.all]
            frames.append(protobuf.text(10, declared[index]))
    return TablePlan(table, tuple(columns), names_of(table.name), *joined(frames))


def frames_of(plan: TablePlan) -> list[bytes]:
    """FRAMES texts for every column of the table; those of a column that is not shown are empty."""
    raw, bounds, shown = plan.frame_texts.tobytes(), plan.frames.tolist(), {column.name for column in plan.columns}
    frames = (raw[first:stop] for first, stop in pairwise(bounds))
    return [next(frames) if column.name in shown else b"" for column in plan.table.columns for _ in range(FRAMES)]


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
