"""One run of `penstock snapshot`: reads the table, writes its rows, and says how far it is."""

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO

from penstock.cli.output import format_size
from penstock.cli.progress import ProgressLine
from penstock.cli.snapshot_files import Format, RowFile, SnapshotFolder, open_whole
from penstock.config import SourceSettings
from penstock.model import Position, TableName
from penstock.render.row_lines import LINE_OPTIONS
from penstock.snapshot.chunks import Chunk
from penstock.snapshot.reader import ChunkRows
from penstock.snapshot.table_snapshot import SnapshotOptions, TableSnapshot


class SnapshotRun:
    """Reads one table and writes it to a stream, a file or a folder.

    SnapshotRun(settings, TableName("shop", "product"), "parquet", SnapshotOptions()).run(Path("product.parquet"))
    """

    def __init__(self, settings: SourceSettings, table: TableName, kind: Format, options: SnapshotOptions) -> None:
        if kind in {"json", "csv"}:
            options = replace(options, decode=LINE_OPTIONS)
        self._kind: Format = kind
        self._address = settings.address
        self._snapshot = TableSnapshot(settings, table, options)
        self._progress = ProgressLine()
        self._began = time.monotonic()
        self._rows = self._read_rows = self._bytes = self._chunks = 0
        self._low: Position | None = None
        self._high: Position | None = None

    def run(self, to: Path | None, *, is_folder: bool = False) -> None:
        """Read the table and write it to standard output, a file or a folder; then say what was read. A path without a
        suffix is that of a folder."""
        for warning in self._snapshot.table.warnings:
            print(f"penstock: {warning}", file=sys.stderr)
        if to is None:
            self._write_file(sys.stdout.buffer, is_pipe=True)
        elif is_folder or to.is_dir() or not to.suffix:
            self._write_folder(to)
        else:
            with open_whole(to) as file:
                self._write_file(file, is_pipe=False)
        self._progress.clear()
        print(self._summary(), file=sys.stderr)

    def _write_file(self, file: BinaryIO, *, is_pipe: bool) -> None:
        """Write all rows to one file."""
        table = self._snapshot.table
        target = RowFile(file, self._kind, table.columns, self._snapshot.schema, is_pipe=is_pipe)
        for rows in self._count(self._snapshot):
            target.write(rows.batches)
        target.finish()

    def _write_folder(self, path: Path) -> None:
        """Write a file per chunk; chunks that an earlier run has finished are not read again."""
        table, schema = self._snapshot.table, self._snapshot.schema
        folder = SnapshotFolder.open(path, table, self._kind, schema, self._address)
        if folder.is_planned:
            self._rows = folder.finished_rows
            print(f"penstock: {path} has {folder.finished_chunks} chunks already: resuming", file=sys.stderr)
        else:
            folder.plan(list(self._snapshot.plan()))
        missing = list(folder.missing())
        chunks = self._snapshot.read(chunk for _, chunk in missing)
        parts = groupby(self._count(chunks), attrgetter("chunk"))
        for (number, _), (_, rows) in zip(missing, parts, strict=True):
            folder.write(number, rows, table.columns, schema)

    def _count(self, chunks: Iterator[ChunkRows] | TableSnapshot) -> Iterator[ChunkRows]:
        """Yield the chunks, or their parts, and show how far the snapshot is after each."""
        last: Chunk | None = None
        for rows in chunks:
            yield rows
            self._rows += rows.rows
            self._read_rows += rows.rows
            self._bytes += rows.bytes
            self._chunks += rows.chunk is not last
            last = rows.chunk
            if rows.watermark is not None:
                low, high = rows.watermark.low, rows.watermark.high
                self._low = low if self._low is None else min(self._low, low)
                self._high = high if self._high is None else max(self._high, high)
            self._progress.show_rows(self._rows, self._snapshot.table.estimated_rows, time.monotonic() - self._began)

    def _summary(self) -> str:
        """Return the line that says what was read, how fast, and where in the log."""
        took_s = max(time.monotonic() - self._began, 1e-9)
        what = f"{self._rows:,} rows of {self._snapshot.table.name}"
        size, rows_per_s = format_size(self._bytes), self._read_rows / took_s
        rate = f"{self._chunks} chunks, {size} in {took_s:.1f} s, {rows_per_s:,.0f} rows/s"
        if self._low is None:
            return f"penstock: {what}: {rate}; the server writes no log, so the position is not known"
        where = f"at {self._low}" if self._low == self._high else f"between {self._low} and {self._high}"
        return f"penstock: {what}: {rate}; {where}"
