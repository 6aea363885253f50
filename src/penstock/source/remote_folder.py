"""A folder behind a URL: HTTP, object storage, whatever fsspec knows."""

from collections.abc import Callable
from typing import Any, TypeVar

from penstock.errors import ConfigurationError, MissingExtraError, PositionLostError, SourceConnectionError

try:
    from fsspec.core import url_to_fs
except ImportError as error:
    raise MissingExtraError.for_extra("fsspec", "reading log files from a URL") from error

T = TypeVar("T")


class RemoteFolder:
    """A folder of log files behind a URL that fsspec can open."""

    def __init__(self, url: str) -> None:
        self.address = url
        try:
            self._files, self._path = url_to_fs(url.rstrip("/"), use_listings_cache=False)
        except ImportError as error:
            raise ConfigurationError(f"{url} cannot be read without another library: {error}") from None
        except ValueError as error:
            raise ConfigurationError(f"{url} is no URL that can be read: {error}") from None
        self._sizes: dict[str, int] = {}  # as they were when last asked for

    def sizes(self) -> dict[str, int]:
        """Return the sizes of all files in the folder, by name."""
        try:
            entries: list[Any] = self._call_fsspec(lambda: self._files.ls(self._path, detail=True))
        except PositionLostError:
            return {}  # where there are no folders, one without files is none
        files = {
            str(entry["name"]).rstrip("/").rpartition("/")[2]: entry
            for entry in entries
            if entry["type"] != "directory"
        }
        # HTTP lists names only.
        return {name: self.size(name) if entry["size"] is None else int(entry["size"]) for name, entry in files.items()}

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        self._sizes[name] = self._call_fsspec(lambda: int(self._files.info(self._url_of(name))["size"] or 0))
        return self._sizes[name]

    def read_into(self, name: str, offset: int, into: memoryview) -> int:
        """Read as many bytes as there is room for, and return how many were there; 0 at the end of the file."""
        size = self._sizes.get(name, 0)
        end = min(size if offset < size else self.size(name), offset + len(into))
        if offset >= end:
            return 0
        data: bytes = self._call_fsspec(lambda: self._files.cat_file(self._url_of(name), start=offset, end=end))
        if len(data) > end - offset:
            raise ConfigurationError(
                f"{self.address} sends whole files when a part is requested: a server of log files must know Range"
            )
        into[: len(data)] = data
        return len(data)

    def _url_of(self, name: str) -> str:
        """Return the path of a file for fsspec."""
        return f"{self._path}/{name}"

    def _call_fsspec(self, question: Callable[[], T]) -> T:
        """Call fsspec; raise its errors as PositionLostError or SourceConnectionError."""
        try:
            return question()
        except FileNotFoundError as error:
            raise PositionLostError(
                f"{self.address}: {error} is gone: bring it back, or choose a later start"
            ) from None
        except Exception as error:
            # Each of fsspec's libraries has errors of its own, and hardly one has nothing to do with the network.
            raise SourceConnectionError(f"{self.address} cannot be read: {error}") from error
