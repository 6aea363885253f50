"""Changes as Arrow and Parquet: batches of one table and one version of its columns go into one file."""

from abc import ABC, abstractmethod
from typing import Any

import pyarrow as pa

_ROWS = 1 << 17  # in a row group
_BYTES = 64 << 20  # that wait for one
_COLUMN_BYTES = 512  # that an array takes besides its values
# For a table's own columns zstd alone is faster than dictionaries, and smaller.
_FEW_VALUES = ["_change_type", "_gtid", "_file", "_changed.list.element", "_absent.list.element"]


class BatchWriter(ABC):
    """Writes record batches of one table version into one file."""

    waiting = 0  # bytes that are not yet written

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch, now or with later ones."""

    @abstractmethod
    def flush(self) -> None:
        """Write the batches that wait."""

    @abstractmethod
    def close(self) -> None:
        """Write what waits and the end of the file."""


class ArrowWriter(BatchWriter):
    """Writes Arrow IPC: a stream, which can go into a pipe, or a file, which can be read from anywhere in it."""

    def __init__(self, stream: Any, fields: pa.Schema, *, is_stream: bool) -> None:
        self._writer: Any = (pa.ipc.new_stream if is_stream else pa.ipc.new_file)(stream, fields)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch at once."""
        self._writer.write_batch(batch)

    def flush(self) -> None:
        """Do nothing, since no batch waits."""

    def close(self) -> None:
        """Write the end of the stream or file."""
        self._writer.close()


class ParquetWriter(BatchWriter):
    """Writes Parquet: batches wait until they fill a row group.

    Arrow's own writer takes 50 KB, too much for thousands of tables that only wait, so it is created with the first row
    group.
    """

    def __init__(self, stream: Any, fields: pa.Schema) -> None:
        self._stream = stream
        self._fields = fields
        self._writer: Any = None
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch to the row group, and write the group if it is full."""
        self._batches.append(batch)
        self._rows += batch.num_rows
        self.waiting += batch.nbytes + _COLUMN_BYTES * batch.num_columns
        if self._rows >= _ROWS or self.waiting >= _BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the waiting batches as a row group."""
        if self._batches:
            self._get_writer().write_table(pa.Table.from_batches(self._batches, self._fields))
        self._batches, self._rows, self.waiting = [], 0, 0

    def _get_writer(self) -> Any:
        """Return Arrow's writer, creating it at the first call."""
        if self._writer is None:
            from pyarrow import parquet  # noqa: PLC0415 - not needed for other formats

            self._writer = parquet.ParquetWriter(
                self._stream, self._fields, compression="zstd", use_dictionary=_FEW_VALUES
            )
        return self._writer

    def close(self) -> None:
        """Write the last row group and the footer."""
        self.flush()
        self._get_writer().close()
        self._writer = None
