"""The files of a log in a folder, on this machine or behind a URL.

A file is read at offsets and may grow meanwhile; nothing stays open between two reads.
"""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from penstock.binlog.events.layout import ENCRYPTED_MAGIC, MAGIC
from penstock.errors import ConfigurationError, PositionLostError, SourceConnectionError
from penstock.model.position import file_number

_LOG_FILE = re.compile(r"(.+)\.(\d{1,19})")


class Folder(Protocol):
    """A folder of log files, on this machine or behind a URL."""

    address: str

    def sizes(self) -> dict[str, int]:
        """Return the sizes of all files in the folder, by name."""
        ...

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        ...

    def read_into(self, name: str, offset: int, into: memoryview) -> int:
        """Read as many bytes as there is room for, and return how many were there; 0 at the end of the file."""
        ...


class LocalFolder:
    """A folder of log files on this machine."""

    def __init__(self, path: Path) -> None:
        self.address = str(path)
        self._path = path
        if not path.is_dir():
            raise ConfigurationError(f"there is no folder {path}")

    def sizes(self) -> dict[str, int]:
        """Return the sizes of all files in the folder, by name."""
        sizes: dict[str, int] = {}
        try:
            for path in self._path.iterdir():
                with suppress(FileNotFoundError):  # it went meanwhile
                    sizes[path.name] = path.stat().st_size
        except OSError as error:
            raise SourceConnectionError(f"{self.address} cannot be read: {error}") from error
        return sizes

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        try:
            return (self._path / name).stat().st_size
        except OSError as error:
            raise self._translate_error(error) from error

    def read_into(self, name: str, offset: int, into: memoryview) -> int:
        """Read as many bytes as there is room for, and return how many were there; 0 at the end of the file."""
        try:
            handle = os.open(self._path / name, os.O_RDONLY)
            try:
                return os.preadv(handle, [into], offset)
            finally:
                os.close(handle)
        except OSError as error:
            raise self._translate_error(error) from error

    def _translate_error(self, error: OSError) -> PositionLostError | SourceConnectionError:
        """Return PositionLostError for a file that is gone, else an error that the folder cannot be read."""
        if isinstance(error, FileNotFoundError):
            return PositionLostError(f"{error.filename} is gone: bring it back, or choose a later start")
        return SourceConnectionError(f"{self.address} cannot be read: {error}")


def open_folder(path: str) -> Folder:
    """Open a folder: a path on this machine, or a URL."""
    if "://" not in path:
        return LocalFolder(Path(path))
    from penstock.source.remote_folder import RemoteFolder  # noqa: PLC0415 - its library is optional

    return RemoteFolder(path)


def list_log_files(folder: Folder, base: str | None = None) -> list[str]:
    """Return the names of the log files, ordered by their numbers: those of `base`, or of the only log that is
    there."""
    return list(list_log_sizes(folder, base))


def list_log_sizes(folder: Folder, base: str | None = None) -> dict[str, int]:
    """Return the sizes of the log files by name, ordered as `list_log_files` orders them."""
    files: dict[str, list[str]] = {}
    sizes = folder.sizes()
    for match in map(_LOG_FILE.fullmatch, sizes):
        if match is not None:
            files.setdefault(str(match[1]), []).append(match[0])
    if base is None and len(files) > 1:
        files = {name: names for name, names in files.items() if _begins_as_log(folder, names)}
    if base is None and len(files) > 1:
        raise ConfigurationError(
            f"{folder.address} has the files of several logs, {', '.join(sorted(files))}: say which with base"
        )
    return {name: sizes[name] for name in sorted(files.get(base or next(iter(files), ""), ()), key=file_number)}


def _begins_as_log(folder: Folder, names: list[str]) -> bool:
    """Return whether a file begins like a binary log: the folder of a MariaDB also has aria_log.00000001."""
    magic = bytearray(len(MAGIC))
    folder.read_into(min(names, key=file_number), 0, memoryview(magic))
    return bytes(magic) in (MAGIC, ENCRYPTED_MAGIC)
