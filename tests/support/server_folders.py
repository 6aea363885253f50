"""Where the servers of a test run keep their data: in memory when the machine has enough, and made from copies.

Invariant: a run has one folder. It is locked while the run lives and removed at its end; a folder whose run was killed
is not locked any more, and the next run removes it. Everything that a server proves by itself (that it can create its
data, that it survives a crash) is still true: each kind creates its data once a run, and the others copy that.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.testing import DatabaseServer, build_once

VARIABLE = "PENSTOCK_TEST_RUN"
"""Names the folder of the run to the workers that pytest starts."""

_MEMORY = Path("/dev/shm")  # noqa: S108 - the folder of the run in it has a random name and belongs to this user
_PREFIX = "penstock-test-"
_LOCK = "run.lock"
# What the servers of two workers have written at the end of a run, and as much again for the programs.
_NEEDED_BYTES = 8 << 30


@contextmanager
def run_folder(parent: Path | None = None) -> Iterator[Path]:
    """Make the folder of this run, below `parent` or where data is quickest, and remove it at the end."""
    remove_abandoned(parent or _MEMORY)  # what a killed run left takes memory that is measured next
    parent = parent or _quickest_parent()
    remove_abandoned(parent)
    # Visible under its name only once it is locked: nobody can take it for abandoned before.
    hidden = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=parent))
    with (hidden / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = hidden.rename(parent / hidden.name.removeprefix("."))
        # Some servers run as another user, who must be able to enter.
        folder.chmod(0o755)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(parent: Path) -> None:
    """Remove the folders of runs that were killed: their locks are free."""
    for lock_file in parent.glob(f"{_PREFIX}*/{_LOCK}"):
        try:
            with lock_file.open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock_file.parent, ignore_errors=True)
        except OSError:
            continue  # a run holds it, it belongs to another user, or it is gone


def fill_data_folder(server: DatabaseServer, kind: str, run: Path) -> None:
    """Give `server` a copy of the data that a server of this kind had when it was new; the first of a run makes it."""
    original = build_once(run / f"{kind}-new", lambda folder: _initialise(server, folder), lambda _text: None)
    if server.data.exists():
        return
    server.folder.mkdir(parents=True, exist_ok=True)
    # Unlike `shutil.copytree`, it leaves the unused parts of log files unused.
    subprocess.run(["cp", "-a", "--sparse=always", str(original), str(server.data)], check=True)  # noqa: S607
    # MySQL's server UUID: each server makes its own when the file is missing.
    (server.data / "auto.cnf").unlink(missing_ok=True)


def _initialise(server: DatabaseServer, folder: Path) -> None:
    (server.folder / "tmp").mkdir(parents=True, exist_ok=True)
    server.initialise(folder)


def _quickest_parent() -> Path:
    """Memory when it has room for the data of a run, else the folder for temporary files."""
    try:
        status = os.statvfs(_MEMORY)
        # Search servers load libraries from their folder.
        if not status.f_flag & os.ST_NOEXEC and min(status.f_bavail * status.f_frsize, _free_memory()) > _NEEDED_BYTES:
            return _MEMORY if os.access(_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    except OSError:
        pass
    return Path(tempfile.gettempdir())


def _free_memory() -> int:
    """How many bytes the kernel could give to programs without swapping."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), 0)
