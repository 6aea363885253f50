"""Changes table by table: each goes into a file of its own in a folder, or the only one into a file or a pipe.

There may be more tables than a process may have files open, and more than memory has room for row groups.
"""

import hashlib
import re
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import BinaryIO, Literal

import pyarrow as pa

from penstock.binlog.events.block import Block
from penstock.binlog.rows.table_changes import TableChanges
from penstock.errors import ConfigurationError
from penstock.model import TableName
from penstock.render.columnar import ArrowWriter, BatchWriter, ParquetWriter
from penstock.render.csv_lines import CsvFormat, EventMetadataTexts
from penstock.render.file_pool import FilePool, PipeFile, WriteOnlyFile
from penstock.render.page import compose_changes

_DOUBTFUL = re.compile(r"[^\w $@#=+,-]")  # a dot, a slash, a percent sign
_LONGEST_NAME = 200  # bytes; file systems have 255, and a version and a suffix come behind it
_WAITING_BYTES = 128 << 20  # of all tables together
Kind = Literal["csv", "arrow", "parquet"]


class OutputFiles:
    """Opens an output file for each version of each table, and closes all of them."""

    def __init__(self, kind: Kind, output: Path | None, stdout: BinaryIO) -> None:
        self._kind: Kind = kind
        self._output = output
        self._stdout = stdout
        self.is_folder = output is not None and (output.is_dir() or not (output.suffix or output.exists()))
        self._versions: dict[TableName, int] = {}
        self._pool = FilePool()

    @property
    def is_pipe(self) -> bool:
        """Tell whether the output goes to a pipe instead of files."""
        return self._output is None

    def open(self, table: TableName) -> WriteOnlyFile:
        """Open the file of a table, or the only output; a second table without a folder is refused."""
        version = self._versions[table] = self._versions.get(table, 0) + 1
        if not self.is_folder and (len(self._versions) > 1 or version > 1):
            raise several_tables_error(self._kind, list(self._versions))
        if self._output is None:
            return PipeFile(self._stdout)
        path = self._output
        if self.is_folder:
            path.mkdir(parents=True, exist_ok=True)
            path /= f"{_file_name(table)}{f'.{version}' if version > 1 else ''}.{self._kind}"
        return self._pool.create(path)

    def close(self) -> None:
        """Close all files."""
        self._pool.close()
        if self._output is None:
            self._stdout.flush()


def several_tables_error(kind: Kind, tables: Sequence[TableName]) -> ConfigurationError:
    """Return the error to raise for several tables, or several versions of one, when the output takes only one."""
    names = dict.fromkeys(map(str, tables))
    contents = f"rows of {', '.join(names)}" if len(names) > 1 else f"versions of {tables[0]} with different columns"
    return ConfigurationError(
        f"{kind} holds one table, and there are {contents}: choose with --table, or give a folder as --to"
    )


class BatchFileWriter:
    """Writes record batches of each table into an Arrow or Parquet file of its own."""

    def __init__(self, targets: OutputFiles, kind: Kind, *, waiting_bytes: int = _WAITING_BYTES) -> None:
        self._targets = targets
        self._kind: Kind = kind
        self._most_waiting = waiting_bytes
        self._waiting = 0
        self._writers: dict[Hashable, BatchWriter] = {}

    def write(self, table: TableName, batch: pa.RecordBatch) -> None:
        """Write a batch into the file of its table, opening it first if needed."""
        version = table, tuple((field.name, str(field.type)) for field in batch.schema)
        writer = self._writers.get(version)
        if writer is None:
            writer = self._writers[version] = self._open_writer(table, batch.schema)
        try:
            before = writer.waiting
            writer.write(batch)
            self._waiting += writer.waiting - before
            if self._waiting > self._most_waiting:
                self._flush_largest()
        except OSError:
            # A full disk, a reader that is gone: what the file lacks cannot be repaired by an orderly end.
            self._writers.clear()
            raise

    def _flush_largest(self) -> None:
        """Flush the writers with the most waiting bytes until the limit is met."""
        for writer in sorted(self._writers.values(), key=lambda writer: -writer.waiting):
            self._waiting -= writer.waiting
            writer.flush()
            if self._waiting <= self._most_waiting // 2:
                return

    def _open_writer(self, table: TableName, fields: pa.Schema) -> BatchWriter:
        """Open the Arrow or Parquet writer of a table."""
        stream = self._targets.open(table)
        if self._kind == "parquet":
            return ParquetWriter(stream, fields)
        return ArrowWriter(stream, fields, is_stream=self._targets.is_pipe)

    def close(self) -> None:
        """Write what waits, and close all writers."""
        while self._writers:
            self._writers.popitem()[1].close()


class CsvFileWriter:
    """Writes changes of each table version into a CSV file of its own."""

    def __init__(self, targets: OutputFiles) -> None:
        self._targets = targets
        self._abouts = EventMetadataTexts()
        self._open: dict[Hashable, tuple[CsvFormat, WriteOnlyFile]] = {}

    def write(self, block: Block, changes: list[TableChanges], most: int | None) -> None:
        """Write at most `most` changes of one table of the block, in the order of the log."""
        table, columns = changes[0].table.name, changes[0].shown
        if (table, columns) not in self._open:
            csv_format, file = CsvFormat(columns, self._abouts), self._targets.open(table)
            file.write(csv_format.write_begin().encode())
            self._open[table, columns] = csv_format, file
        csv_format, file = self._open[table, columns]
        lines = compose_changes(block, changes, csv_format)
        file.write((lines if most is None else lines.cut_after_changes(most)).raw)

    def close(self) -> None:
        """Do nothing: a CSV file has no footer."""


def _file_name(table: TableName) -> str:
    """Return a file name for a table in which the only dot separates schema and table, so that no two tables share a
    file.
    """
    name = ".".join(_DOUBTFUL.sub(lambda match: f"%{ord(match[0]):02X}", name) for name in (table.schema, table.table))
    raw = name.encode()
    if len(raw) <= _LONGEST_NAME:
        return name
    mark = hashlib.sha256(raw).hexdigest()[:16]
    return f"{raw[: _LONGEST_NAME - len(mark)].decode(errors='ignore')}%{mark}"
