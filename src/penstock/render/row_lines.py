"""Rows of one table as lines of JSON or CSV: the values are those that the same rows have as changes.

Dates and times come in as text, as the server prints them.
"""

import json
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa

from penstock.binlog.values.column import DecodeOptions
from penstock.model import Column
from penstock.render.csv_lines import CsvValueWriter, quote_cell
from penstock.render.dialect import ValueWriter
from penstock.render.json_lines import JsonValueWriter
from penstock.render.text import get_raw_bytes
from penstock.render.weave import ColumnPiece, write_lines

LINE_OPTIONS = DecodeOptions(dates="text")
"""How rows are decoded that become lines."""


class RowLines:
    """Writes rows of a table as lines.

    lines = RowLines(columns, "json")
    file.write(lines.header())
    file.write(lines.write(batch))
    """

    def __init__(self, columns: Sequence[Column], kind: Literal["json", "csv"]) -> None:
        self._columns, self._kind = columns, kind
        self._writer: ValueWriter = JsonValueWriter() if kind == "json" else CsvValueWriter()

    def header(self) -> bytes:
        """Return what comes before the first row: the names of the columns in CSV, nothing in JSON."""
        if self._kind == "json":
            return b""
        return (",".join(quote_cell(column.name) for column in self._columns) + "\n").encode()

    def write(self, batch: pa.RecordBatch) -> memoryview:
        """Return the rows of a batch as lines."""
        rows, pieces = np.arange(batch.num_rows, dtype=np.int64), list[str | ColumnPiece]()
        for number, column in enumerate(self._columns):
            if self._kind == "json":
                name = json.dumps(column.name, ensure_ascii=False)
                pieces.append(f"{',' if number else '{'}{name}:")
            elif number:
                pieces.append(",")
            pieces.append(self._writer.write_column(column, batch.column(number)).pick_rows(rows))
        pieces.append("}\n" if self._kind == "json" else "\n")
        return get_raw_bytes(write_lines(pieces, batch.num_rows))
