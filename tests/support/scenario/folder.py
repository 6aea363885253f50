"""A folder into which the files of a server's log come, and somebody who writes to the server."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.config import DirectorySettings
from penstock.model import Position
from penstock.source.folder_source import FolderSource
from penstock.testing import DatabaseServer
from tests.support.capture import end_of, poll
from tests.support.scenario.server_log import keep_all, log_files
from tests.support.scenario.workload import Workload


@contextmanager
def copied(server: DatabaseServer, folder: Path) -> Iterator[None]:
    """As it grows, in pieces of any size; a file is whole before the next one begins."""
    pieces, stopping = random.Random(random.randrange(1 << 32)), threading.Event()

    def copy() -> None:
        while not stopping.wait(0.002):
            for path in log_files(server.data):
                target = folder / path.name
                have = target.stat().st_size if target.exists() else 0
                missing = path.stat().st_size - have
                if missing:
                    with path.open("rb") as source, target.open("ab", buffering=0) as copy:
                        source.seek(have)
                        copy.write(source.read(pieces.choice((1, 100, 5_000, 300_000, 1 << 24))))
                    break

    thread = threading.Thread(target=copy, name="copier", daemon=True)
    thread.start()
    yield
    stopping.set()
    thread.join()


@contextmanager
def working(server: DatabaseServer) -> Iterator[Workload]:
    workload = Workload(server, random.randrange(1 << 32))
    workload.start()
    try:
        yield workload
    finally:
        workload.stop()


def whole_copy(server: DatabaseServer, folder: Path) -> Position:
    """Of a log to which nobody writes, up to its end. MariaDB still adds a word of its own some time after."""
    origin = FolderSource(DirectorySettings(path=str(folder)))

    def is_whole() -> bool:
        keep_all(server, folder)
        return origin.end() == end_of(server)

    assert poll(is_whole)
    return origin.end()
