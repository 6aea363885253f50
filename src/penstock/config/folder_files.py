"""Which files of a conf folder are configuration files, and their content at one moment.

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
class ConfigFiles:
    """The configuration files of a folder: those of the server, and those of each destination. More than one file for
    the same destination is an error that is reported later."""

    server: list[Path]
    instances: dict[str, list[Path]]

    def __iter__(self) -> Iterator[Path]:
        yield from self.server
        for paths in self.instances.values():
            yield from paths


def list_config_files(path: Path) -> ConfigFiles:
    """Return the configuration files of a folder; a path that is a file is the server's own."""
    return _list_folder(path) if path.is_dir() else ConfigFiles([path], {})


def _list_folder(folder: Path) -> ConfigFiles:
    """Return the configuration files of a folder. Raises ConfigurationError when it cannot be read."""
    files = ConfigFiles([], {})
    try:
        entries = sorted(file for file in folder.iterdir() if not file.name.startswith("."))
    except OSError as error:
        raise ConfigurationError(f"cannot read the folder {folder}: {error.strerror}") from None
    for entry in entries:
        if entry.name in _SERVER:
            files.server.append(entry)
        elif entry.suffix in _YAML:
            files.instances.setdefault(entry.stem, []).append(entry)
        elif entry.is_dir():
            for path in _instance_files(entry):
                files.instances.setdefault(entry.name, []).append(path)
    return files


def _instance_files(folder: Path) -> list[Path]:
    """Return the instance files in a destination's folder; canal accepts instance.properties in any case."""
    try:
        return sorted(file for file in folder.iterdir() if file.name.lower() in _INSTANCE)
    except OSError:
        return []


class FileContents:
    """Reads each file only once, so that all settings of one read come from the same content. A file that cannot be
    read has the content None."""

    def __init__(self) -> None:
        self.contents: dict[Path, bytes | None] = {}
        self._errors: dict[Path, OSError] = {}

    def read(self, path: Path) -> bytes:
        """Return the content of a file. Raises OSError."""
        content = self.try_read(path)
        if content is None:
            raise self._errors[path]
        return content

    def try_read(self, path: Path) -> bytes | None:
        """Return the content of a file, or None if it cannot be read."""
        if path not in self.contents:
            try:
                self.contents[path] = path.read_bytes()
            except OSError as error:
                self.contents[path], self._errors[path] = None, error
        return self.contents[path]


class TrackedReader:
    """Reads a file and the files that it refers to, and remembers their paths.

    reader = TrackedReader(FileContents())
    text = reader.read(Path("conf/shop.yml"))
    """

    def __init__(self, files: FileContents, paths: Iterable[Path] = ()) -> None:
        self.files = files
        self.paths = dict.fromkeys(paths)

    def read(self, path: Path) -> bytes:
        """Return the content of a file, and record its path in `paths`, so that a change of the file causes a reload.
        Raises OSError."""
        self.paths[path] = None
        return self.files.read(path)

    def contents(self) -> list[bytes | None]:
        """Return the contents of all files that were read."""
        return [self.files.try_read(path) for path in self.paths]
