"""A server's own log as plain Python reads it: each event with its position, out of the server's files.

Invariant: nothing of Penstock's reading is used but the expanding of what is compressed in the log.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from penstock.binlog.events.block import Block
from penstock.binlog.events.expand import COMPRESSED_KINDS, decompress_event, open_payload
from penstock.model import Position
from penstock.model.position import file_number
from penstock.testing import DatabaseServer, MariaDB
from tests.services import SERVICES
from tests.services.mysql import MySQL
from tests.services.service import ServerService

T = TypeVar("T")
Event = tuple[int, int, bytes]
"""Number of the file, offset in it, bytes."""

MAGIC = b"\xfebin"
_FORMAT, _ROTATE, _PAYLOAD = 15, 4, 40
ANNOTATE = 160  # the text of a statement, which MariaDB sends to nobody who does not ask for it
_CHECKSUM_AT_END = 5  # of a format event: algorithm 1 | CRC32 4


def log_files(folder: Path) -> list[Path]:
    paths = [path for path in folder.glob("binlog.*") if path.suffix[1:].isdigit()]
    return sorted(paths, key=lambda path: file_number(path.name))


def events_between(folder: Path, start: Position, end: Position) -> list[Event]:
    """What a capture of (start, end] has of these files."""
    events, numbers = list[Event](), range(start.file_number, end.file_number + 1)
    files = {file_number(path.name): path for path in log_files(folder)}
    for number in numbers:
        data = files[number].read_bytes()
        low = start.offset if number == start.file_number else 0
        high = end.offset if number == end.file_number else len(data)
        events += [(number, at, raw) for at, raw in _events(data[:high]) if at >= low]
    return events


def _events(data: bytes) -> Iterator[tuple[int, bytes]]:
    assert data[:4] == MAGIC
    at, checksum = len(MAGIC), 0
    while at < len(data):
        size = int.from_bytes(data[at + 9 : at + 13], "little")
        raw = data[at : at + size]
        assert len(raw) == size >= 19, f"no whole event at {at}"
        if raw[4] == _FORMAT:
            checksum = 4 if raw[-_CHECKSUM_AT_END] else 0
        elif raw[4] == _PAYLOAD:
            yield from _inside(raw[: size - checksum], at, size)
        elif raw[4] in COMPRESSED_KINDS:
            yield at, bytes(decompress_event(raw[: size - checksum]))
        elif raw[4] not in {_ROTATE, ANNOTATE}:
            yield at, raw
        at += size


def _inside(payload: bytes, at: int, span: int) -> Iterator[tuple[int, bytes]]:
    """They share its span."""
    stream, total = open_payload(memoryview(payload))
    data = stream.read()
    assert len(data) == total
    inner = 0
    while inner < total:
        size = int.from_bytes(data[inner + 9 : inner + 13], "little")
        yield at + inner * span // total, data[inner : inner + size]
        inner += size


def events_of(block: Block) -> list[Event]:
    """What was captured, in the same shape."""
    data, starts, sizes = block.raw
    number, raw = block.start.file_number, data.tobytes()
    spans = zip(block.column("position").tolist(), starts.tolist(), sizes.tolist(), strict=True)
    return [(number, at, raw[start : start + size]) for at, start, size in spans]


def keep_closed(server: DatabaseServer, folder: Path) -> None:
    """Copy the files that the server does not write any more and that are not there yet."""
    for path in log_files(server.data)[:-1]:
        if not (folder / path.name).exists():
            shutil.copyfile(path, folder / path.name)


def keep_all(server: DatabaseServer, folder: Path) -> None:
    for path in log_files(server.data):
        shutil.copyfile(path, folder / path.name)


def copy_by_tool(server: DatabaseServer, files: list[str], folder: Path) -> None:
    """As the server's own program gets them over the network."""
    command = [
        *_tool(server, folder),
        "--no-defaults",
        "--read-from-remote-server",
        "--raw",
        f"--result-file={folder}/",
    ]
    command += [f"--host={server.host}", f"--port={server.port}", f"--user={server.user}", *files]
    done = subprocess.run(command, capture_output=True, check=False, env={"MYSQL_PWD": server.password})
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")


def _tool(server: DatabaseServer, folder: Path) -> list[str]:
    """The old releases of MySQL came without it. That of the newest reads 8.0, too; to 5.7 it cannot log in, but
    MariaDB's can."""
    if isinstance(server, MySQL) and not server.version.startswith("5."):
        return _new("mysql9", folder, MySQL).tool("mysqlbinlog")
    mariadb = server if isinstance(server, MariaDB) else _new("mariadb", folder, MariaDB)
    return mariadb.installation.tool_command("mariadb-binlog")


def _new(name: str, folder: Path, kind: type[T]) -> T:
    """A server that is never started."""
    service = SERVICES[name]
    assert isinstance(service, ServerService)
    server = service.server(folder / "never-started")
    assert isinstance(server, kind)
    return server
