"""A source that is captured on this machine: its folder, and who uses it (real ones: tests/spark/test_embedded)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.client.embedded import EmbeddedSource, find_or_start
from penstock.errors import ConfigurationError
from penstock.local_process import LocalProcess
from penstock.server.embedded import has_users


def test_a_server_is_used_as_long_as_one_registered_process_lives(tmp_path: Path) -> None:
    users = tmp_path / "users"
    assert not has_users(users)
    users.mkdir()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        (users / LocalProcess.find(other.pid).to_text()).touch()
        assert has_users(users)
        (users / LocalProcess.current().to_text()).touch()
        assert other.stdin is not None
        other.stdin.close()
    assert has_users(users)
    assert [file.name for file in users.iterdir()] == [LocalProcess.current().to_text()]
    (users / LocalProcess.current().to_text()).rename(users / f"{os.getpid()}-1")  # another process with our id
    assert not has_users(users)


def test_a_folder_that_cannot_be_written_or_belongs_to_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="name another folder"):
        find_or_start(EmbeddedSource(host="db1", state_dir=str(tmp_path / "file")))
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(ConfigurationError, match="belongs to another user"):
        find_or_start(EmbeddedSource(host="db1", state_dir=str(tmp_path / "state")))
