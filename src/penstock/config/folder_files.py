"""Which files of a conf folder say something, and what was in them at one moment.

Names that begin with a dot are passed over, and links are followed, as Kubernetes mounts a ConfigMap.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import ConfigurationError

_YAML = (".yml", ".yaml")
_SERVER = ("server.yml", "server.yaml", "canal.properties")
_INSTANCE = ("instance.yml", "instance.yaml", "instance.properties")


@dataclass(frozen=True, slots=True)
class Listing:
    """More than one file for the server, or for a destination, is a mistake that is told later."""

    server: list[Path]
    instances: dict[str, list[Path]]

    def __iter__(self) -> Iterator[Path]:
        yield from self.server
        for paths in self.instances.values():
            yield from paths


def list_conf(path: Path) -> Listing:
    """Of a folder; or of the file of a server, alone."""
    return _list_folder(path) if path.is_dir() else Listing([path], {})


def _list_folder(folder: Path) -> Listing:
    found = Listing([], {})
    try:
        entries = sorted(one for one in folder.iterdir() if not one.name.startswith("."))
    except OSError as error:
        raise ConfigurationError(f"cannot read the folder {folder}: {error.strerror}") from None
    for entry in entries:
        if entry.name in _SERVER:
            found.server.append(entry)
        elif entry.suffix in _YAML:
            found.instances.setdefault(entry.stem, []).append(entry)
        elif entry.is_dir():
            for path in _instance_files(entry):
                found.instances.setdefault(entry.name, []).append(path)
    return found


def _instance_files(folder: Path) -> list[Path]:
    """canal takes instance.properties in any case."""
    try:
        return sorted(one for one in folder.iterdir() if one.name.lower() in _INSTANCE)
    except OSError:
        return []


class FileContents:
    """Reads each file once. What could not be read is None."""

    def __init__(self) -> None:
        self.contents: dict[Path, bytes | None] = {}
        self._errors: dict[Path, OSError] = {}

    def read(self, path: Path) -> bytes:
        content = self.look(path)
        if content is None:
            raise self._errors[path]
        return content

    def look(self, path: Path) -> bytes | None:
        if path not in self.contents:
            try:
                self.contents[path] = path.read_bytes()
            except OSError as error:
                self.contents[path], self._errors[path] = None, error
        return self.contents[path]


class TrackedReader:
    """A file and what it refers to: remembers the paths."""

    def __init__(self, files: FileContents, paths: Iterable[Path] = ()) -> None:
        self.files = files
        self.paths = dict.fromkeys(paths)

    def read(self, path: Path) -> bytes:
        self.paths[path] = None
        return self.files.read(path)

    def contents(self) -> list[bytes | None]:
        return [self.files.look(path) for path in self.paths]
