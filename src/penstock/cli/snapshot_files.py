"""The files that `penstock snapshot` writes: one stream or file, or a folder that an interrupted snapshot resumes in.

A folder has a file per chunk, and `_snapshot.json` with the table, its columns and key, the chunks, and of each
finished chunk its rows and watermark. A chunk is finished when it is in there; what a crash leaves of another is
written again.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, Literal

import pyarrow as pa

from penstock.disk import open_replacement, replace_file
from penstock.errors import ConfigurationError
from penstock.model import Column
from penstock.render.columnar import ArrowWriter, ParquetWriter
from penstock.render.file_pool import PipeFile
from penstock.render.row_lines import RowLines
from penstock.snapshot.chunks import Chunk
from penstock.snapshot.reader import ChunkRows
from penstock.snapshot.table import SnapshotTable
from penstock.source.consistent_read import Watermark

Format = Literal["parquet", "csv", "json", "arrow"]
FORMATS: tuple[Format, ...] = ("parquet", "csv", "json", "arrow")
_STATE = "_snapshot.json"
_VERSION = 1


class RowFile:
    """A file of rows of one table, in the format that the user chose."""

    def __init__(
        self, file: BinaryIO, kind: Format, columns: Sequence[Column], schema: pa.Schema, *, is_pipe: bool
    ) -> None:
        self._file = file
        self._lines: RowLines | None = None
        self._batches: ArrowWriter | ParquetWriter | None = None
        if kind == "json" or kind == "csv":  # noqa: PLR1714 - so that the type is known
            self._lines = RowLines(columns, kind)
            file.write(self._lines.header())
        elif kind == "arrow":
            self._batches = ArrowWriter(PipeFile(file), schema, is_stream=is_pipe)
        else:
            self._batches = ParquetWriter(PipeFile(file), schema)

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Write rows."""
        for batch in batches:
            if self._lines is not None:
                self._file.write(self._lines.write(batch))
            elif self._batches is not None:
                self._batches.write(batch)

    def finish(self) -> None:
        """Write the end of the file."""
        if self._batches is not None:
            self._batches.close()
        self._file.flush()


def open_whole(path: Path) -> AbstractContextManager[BinaryIO]:
    """Open a file that gets its name when all of it is written."""
    return open_replacement(path, suffix=".partial", mode=0o666)


class SnapshotFolder:
    """A folder with a file per chunk, in which an interrupted snapshot resumes.

    folder = SnapshotFolder.open(Path("product"), snapshot.table, "parquet", schema, "db1:3306")
    for number, chunk in folder.missing(): ...
    """

    def __init__(self, path: Path, kind: Format, state: dict[str, Any]) -> None:
        self._path, self._state = path, state
        self._kind: Format = kind
        self._finished: dict[str, Any] = state["finished"]

    @classmethod
    def open(cls, path: Path, table: SnapshotTable, kind: Format, schema: pa.Schema, source: str) -> "SnapshotFolder":
        """Open a folder: a new one, or one with a snapshot of the same table that was interrupted."""
        columns = [[field.name, str(field.type)] for field in schema]
        known = {
            "version": _VERSION,
            "table": str(table.name),
            "source": source,
            "format": kind,
            "columns": columns,
            "key": table.key_description,
        }
        file = path / _STATE
        if not file.exists():
            if path.exists() and any(path.iterdir()):
                raise ConfigurationError(f"{path} is not empty, and has no snapshot in it: choose another folder")
            path.mkdir(parents=True, exist_ok=True)
            return cls(path, kind, {**known, "chunks": None, "finished": {}})
        state = json.loads(file.read_text())
        for name, value in known.items():
            if state.get(name) != value:
                raise ConfigurationError(
                    f"{path} has a snapshot with another {name} ({state.get(name)!r}, now {value!r}): choose another"
                    " folder, or remove this one"
                )
        return cls(path, kind, state)

    @property
    def is_planned(self) -> bool:
        """Return whether the chunks of the table are known from before."""
        return self._state["chunks"] is not None

    @property
    def finished_rows(self) -> int:
        """Return the rows of the chunks that are finished."""
        return sum(entry["rows"] for entry in self._finished.values())

    @property
    def finished_chunks(self) -> int:
        """Return how many chunks are finished."""
        return len(self._finished)

    def plan(self, chunks: Sequence[Chunk]) -> None:
        """Persist the chunks of the table, before the first one is read."""
        self._state["chunks"] = [[chunk.after, chunk.until, chunk.estimated_rows] for chunk in chunks]
        self._save()

    def missing(self) -> Iterator[tuple[int, Chunk]]:
        """Yield the chunks that are not finished, with their numbers."""
        for number, (after, until, rows) in enumerate(self._state["chunks"]):
            if str(number) not in self._finished:
                yield number, Chunk(_key(after), _key(until), rows)

    def write(self, number: int, parts: Iterable[ChunkRows], columns: Sequence[Column], schema: pa.Schema) -> None:
        """Write the file of a chunk, whose rows come in parts, and note that it is finished."""
        name = f"part-{number:06}.{self._kind}"
        entry: dict[str, Any] = {"file": name, "rows": 0}
        marks: list[Watermark] = []
        with open_whole(self._path / name) as file:
            target = RowFile(file, self._kind, columns, schema, is_pipe=False)
            for rows in parts:
                target.write(rows.batches)
                entry["rows"] += rows.rows
                if rows.watermark is not None:
                    marks.append(rows.watermark)
            target.finish()
        if marks:
            entry["low"] = min(mark.low for mark in marks).to_json()
            entry["high"] = max(mark.high for mark in marks).to_json()
        self._finished[str(number)] = entry
        self._save()

    def _save(self) -> None:
        """Persist the state."""
        replace_file(self._path / _STATE, json.dumps(self._state, indent=1).encode())


def _key(values: list[str] | None) -> tuple[str, ...] | None:
    """Return a limit between chunks as it was before JSON."""
    return None if values is None else tuple(values)
