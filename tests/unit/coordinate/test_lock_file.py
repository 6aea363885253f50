"""Two servers on one folder."""

import errno
import fcntl
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.coordinate import LockFile, LockWords
from penstock.errors import ConfigurationError

_HOLDER = """
import os, sys
from pathlib import Path
from penstock.coordinate import LockFile
lock = LockFile(Path(sys.argv[1]))
lock.take()
if sys.argv[2] != "fork" or os.fork() == 0:
    print("taken", flush=True)
sys.stdin.read()
"""


def holder(folder: Path, option: str = "") -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", _HOLDER, str(folder), option]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"taken\n"
    return process


def kill(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def end(process: "subprocess.Popen[bytes]") -> None:
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()


def test_the_second_is_told_who_has_it(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    process = holder(folder)
    told = rf"{re.escape(str(folder))} is in use by another server, pid={process.pid} since=\d{{4}}-.*Z: stop that one"
    with pytest.raises(ConfigurationError, match=told):
        LockFile(folder).take()
    kill(process)
    with LockFile(folder) as lock:
        assert lock.path.read_text().startswith(f"pid={os.getpid()} since=")
        with pytest.raises(ConfigurationError, match=f"pid={os.getpid()} "):
            LockFile(folder).take()
    with LockFile(folder):
        pass
    end(process)


def test_a_process_that_it_forked_does_not_hold_it_on(tmp_path: Path) -> None:
    process = holder(tmp_path, "fork")
    kill(process)
    with LockFile(tmp_path):
        pass
    end(process)


def test_those_that_share_it_keep_out_who_wants_it_alone(tmp_path: Path) -> None:
    def lock(*, is_shared: bool) -> LockFile:
        words = LockWords("`penstock sync`", "checkpoint", ", or share it")
        return LockFile(tmp_path / "orders", path=tmp_path / "orders.lock", words=words, is_shared=is_shared)

    told = rf"orders is in use by another `penstock sync`, pid={os.getpid()} .* a checkpoint of its own, or share it"
    with lock(is_shared=True), lock(is_shared=True), pytest.raises(ConfigurationError, match=told):
        lock(is_shared=False).take()
    with lock(is_shared=False), pytest.raises(ConfigurationError, match=told):
        lock(is_shared=True).take()
    assert not (tmp_path / "orders").exists()


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(ConfigurationError, match=r"knows no locks .* choose a data_dir on another"):
        LockFile(tmp_path).take()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        LockFile(tmp_path / "file").take()
