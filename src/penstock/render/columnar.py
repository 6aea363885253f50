"""Changes as Arrow and Parquet: batches of one table and one version of its columns go into one file."""

from abc import ABC, abstractmethod
from typing import Any

import pyarrow as pa

_ROWS = 1 << 17  # in a row group
_BYTES = 64 << 20  # that wait for one
# For a table's own columns zstd alone is faster than dictionaries, and smaller.
_FEW_VALUES = ["_change_type", "_gtid", "_file", "_changed.list.element", "_absent.list.element"]


class BatchWriter(ABC):
    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None: ...

    @abstractmethod
    def close(self) -> None: ...


class ArrowWriter(BatchWriter):
    """A stream can go into a pipe; a file can be read from anywhere in it."""

    def __init__(self, stream: Any, fields: pa.Schema, *, is_stream: bool) -> None:
        self._writer: Any = (pa.ipc.new_stream if is_stream else pa.ipc.new_file)(stream, fields)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()


class ParquetWriter(BatchWriter):
    """Blocks of the log are small: their batches wait until they fill a row group."""

    def __init__(self, stream: Any, fields: pa.Schema) -> None:
        from pyarrow import parquet  # noqa: PLC0415 - not needed for other formats

        self._fields = fields
        self._writer: Any = parquet.ParquetWriter(stream, fields, compression="zstd", use_dictionary=_FEW_VALUES)
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= _ROWS or self._bytes >= _BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting, self._fields))
        self._waiting, self._rows, self._bytes = [], 0, 0

    def close(self) -> None:
        self._flush()
        self._writer.close()
