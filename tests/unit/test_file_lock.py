"""The one lock on files that all rooms use."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.disk import FileLock, remove_abandoned_folders
from penstock.errors import MetaError, StoreError
from penstock.meta import FileMetaBackend
from penstock.store import FileStorage

_HOLD = """
import sys
from pathlib import Path
from penstock.disk import FileLock
lock = FileLock(Path(sys.argv[1]))
lock.acquire()
lock.write_note("held by a test")
print("held", flush=True)
sys.stdin.read()
"""


def test_one_process_at_a_time_has_it_and_a_kill_gives_it_back(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "sub" / "lock")
    assert not lock.is_taken()
    command = [sys.executable, "-c", _HOLD, str(lock.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert lock.is_taken()
        with pytest.raises(BlockingIOError):
            lock.acquire()
        assert not lock.is_held
        assert lock.read_note() == "held by a test"
        holder.kill()
        holder.wait()
    assert not lock.is_taken()
    lock.acquire()
    assert lock.is_held
    assert lock.path.stat().st_mode & 0o777 == 0o600
    lock.release()
    assert not lock.is_taken()
    lock.release()  # again is no error


def test_a_file_system_without_locks_is_not_taken_for_a_running_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StoreError, match="cannot be opened: No locks available"):
        FileStorage(tmp_path)
    with pytest.raises(MetaError, match="cannot be written: No locks available"):
        FileMetaBackend("shop", tmp_path).load()


def test_folders_of_killed_processes_are_removed_and_no_others(tmp_path: Path) -> None:
    names = ("new", "old", "held", "unlocked")
    folders = {name: tmp_path / f"penstock-schema-{name}" for name in names} | {"other": tmp_path / "other"}
    for name, folder in folders.items():
        folder.mkdir()
        (folder / "00000001.history").touch()
        if name != "unlocked":
            (folder / "schema.lock").touch()
            os.utime(folder / "schema.lock", None if name == "new" else (0, 0))
    lock = FileLock(folders["held"] / "schema.lock")
    lock.acquire()
    remove_abandoned_folders(tmp_path, "penstock-schema-", "schema.lock")
    lock.release()
    assert {name for name, folder in folders.items() if folder.exists()} == {"new", "held", "unlocked", "other"}
