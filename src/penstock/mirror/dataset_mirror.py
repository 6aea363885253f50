"""A mirror in files: Parquet in a folder, or a Delta table.

Files are read through `pyarrow.dataset`, batch by batch. A stream may replace them at any time: then they are listed
and read again.
"""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs

from penstock.errors import ConfigurationError, MirrorChangedError, MissingExtraError
from penstock.mirror.comparison import RowComparison
from penstock.mirror.selection import RowSelection
from penstock.model.integer_range import IntegerRange

_ROWS_PER_BATCH = 1 << 16
_TRIES, _PAUSE_S = 5, 0.5

OpenFiles = Callable[[], tuple[object, Any]]
"""Lists the files that a mirror has now: returns a version, which another list of files has not, and a dataset."""


class DatasetMirror:
    """Reads the rows of a mirror in files.

    mirror = DatasetMirror("/data/orders", partial(list_parquet_files, "/data/orders"))
    batches = mirror.scan(comparison, RowSelection())
    """

    json_columns: frozenset[str] = frozenset()

    def __init__(self, path: str, open_files: OpenFiles, *, pause: Callable[[float], object] | None = None) -> None:
        self.description = path
        self._open_files, self._pause = open_files, pause or threading.Event().wait
        self._version, self._dataset = self._retry(self._list_files)
        self._last_read: tuple[object, frozenset[str], list[pa.RecordBatch]] | None = None

    @property
    def schema(self) -> pa.Schema:
        """Return the Arrow schema of the rows."""
        return self._dataset.schema

    def estimate_rows(self) -> int:
        """Return how many rows the files have."""
        return self._retry(self._count_rows)

    def scan(self, comparison: RowComparison, selection: RowSelection) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a selection. Raises MirrorChangedError when files are replaced meanwhile."""
        self._version, self._dataset = self._retry(self._list_files)
        for batch in self._read_batches(comparison, _find_filter(self.schema, comparison, selection.keys)):
            yield selection.filter_rows(batch, comparison)

    def read_keys(self, comparison: RowComparison, ids: Sequence[str]) -> list[pa.RecordBatch]:
        """Return the rows with these ids, and maybe others, from the files that there are now; files that have been
        read for these ids already are not read again."""
        return self._retry(lambda: self._read_keys(comparison, frozenset(ids)))

    def _read_keys(self, comparison: RowComparison, wanted: frozenset[str]) -> list[pa.RecordBatch]:
        """Return the rows with these ids, unless files are replaced meanwhile."""
        self._version, self._dataset = self._list_files()
        if self._last_read is not None:
            version, known, batches = self._last_read
            if version == self._version and wanted <= known:
                return batches
        names = pa.array(list(wanted), pa.string())
        batches: list[pa.RecordBatch] = []
        for batch in self._read_batches(comparison, None):
            some = batch.filter(pc.is_in(comparison.make_ids(batch), value_set=names))
            if some.num_rows:
                batches.append(some)
        self._last_read = self._version, wanted, batches
        return batches

    def _read_batches(self, comparison: RowComparison, condition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the files that were listed last."""
        with self._translate_errors():
            scanner = self._dataset.scanner(
                columns=comparison.names,
                filter=condition,
                batch_size=_ROWS_PER_BATCH,
                batch_readahead=4,
                fragment_readahead=1,
            )
            for batch in scanner.to_batches():
                if batch.num_rows:
                    yield batch

    def _count_rows(self) -> int:
        """Return how many rows the files have that there are now."""
        self._version, self._dataset = self._list_files()
        with self._translate_errors():
            return self._dataset.count_rows()

    @contextmanager
    def _translate_errors(self) -> Generator[None]:
        """Raise MirrorChangedError for files that are gone, or not written to their end."""
        try:
            yield
        except (OSError, pa.ArrowInvalid) as error:
            raise MirrorChangedError(
                f"the files of {self.description} were replaced while they were read, or are damaged: {error}"
            ) from error

    def _list_files(self) -> tuple[object, Any]:
        """Return the files that there are now. Raises ConfigurationError if there are none."""
        with self._translate_errors():
            version, dataset = self._open_files()
        if not dataset.schema.names:
            raise ConfigurationError(f"{self.description} has no Parquet files, and is no Delta table")
        return version, dataset

    def _retry(self, read: Callable[[], Any]) -> Any:
        """Return what a function reads, which is called again when files are replaced meanwhile."""
        for number in range(_TRIES):
            try:
                return read()
            except MirrorChangedError:
                if number + 1 == _TRIES:
                    raise
                self._pause(_PAUSE_S)
        raise AssertionError

    def close(self) -> None:
        """Forget what was read."""
        self._last_read = None


def is_delta_table(path: str) -> bool:
    """Return whether a folder, or one that a URI names, is a Delta table: some of its files may not count any more."""
    system, inner = _find_folder(path)
    return system.get_file_info(f"{inner.rstrip('/')}/_delta_log").type == fs.FileType.Directory


def _find_folder(path: str) -> tuple[Any, str]:
    """Return the file system that has a folder, and the path of the folder there."""
    return fs.FileSystem.from_uri(path) if "://" in path else (fs.LocalFileSystem(), path)


def list_parquet_files(path: str) -> tuple[object, Any]:
    """Return the Parquet files of a folder as a dataset; their names, sizes and times are its version."""
    system, inner = _find_folder(path)
    info = system.get_file_info(inner)
    if info.type == fs.FileType.NotFound:
        raise ConfigurationError(f"there is no folder {path}")
    files = [info] if info.is_file else system.get_file_info(fs.FileSelector(inner, recursive=True))
    version = sorted((file.path, file.size, file.mtime_ns) for file in files if file.is_file)
    # Spark writes timestamps as INT96, whose nanoseconds do not reach the years that a database has.
    reading = ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
    kind = ds.ParquetFileFormat(read_options=reading)
    return version, ds.dataset(inner, filesystem=system, format=kind, partitioning="hive")


def list_delta_files(path: str) -> tuple[object, Any]:
    """Return the files of the newest version of a Delta table."""
    try:
        from deltalake import DeltaTable  # noqa: PLC0415 - an extra
        from deltalake.exceptions import DeltaError  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError.for_extra("delta", "reading a Delta table") from error
    try:
        table: Any = DeltaTable(path)
        return table.version(), table.to_pyarrow_dataset()
    except DeltaError as error:
        raise ConfigurationError(f"cannot read the Delta table {path}: {error}") from error


def _find_filter(schema: pa.Schema, comparison: RowComparison, keys: IntegerRange | None) -> Any:
    """Return what lets files be skipped that have no keys of a range; None where nothing does."""
    name = comparison.key[0].name
    if keys is None or not pa.types.is_integer(schema.field(name).type):
        return None
    limits = [ds.field(name) >= keys.low] if keys.low is not None else []
    limits += [ds.field(name) <= keys.high] if keys.high is not None else []
    return limits[0] & limits[-1]
