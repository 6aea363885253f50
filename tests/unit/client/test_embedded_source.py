"""A source that is captured on this machine: its folder, and who uses it (real ones: tests/spark/test_embedded)."""

import hashlib
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.client import FlightClient, embedded
from penstock.client.embedded import EmbeddedSource, find_or_start
from penstock.disk import FileLock
from penstock.errors import ConfigurationError, ServerUnavailableError
from penstock.local_process import LocalProcess
from penstock.server.embedded import has_users
from penstock.testing import poll_until
from tests.support.admin_support import shop_folder

START_S = 120.0


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
        find_or_start(EmbeddedSource(host="db1", state_dir=str(tmp_path / "file")), START_S)
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(ConfigurationError, match="belongs to another user"):
        find_or_start(EmbeddedSource(host="db1", state_dir=str(tmp_path / "state")), START_S)


def test_machines_and_accounts_that_share_a_folder_have_one_each_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Home folders may be on a network: the process of one machine is nothing to another, whatever its number is."""
    source = {"host": "db1", "user": "penstock", "state_dir": str(tmp_path)}
    folders = set[Path]()
    for machine in ("first", "second"):
        monkeypatch.setattr(platform, "node", lambda machine=machine: machine)
        folders |= {EmbeddedSource(**source, password=password).folder for password in ("one", "two")}
        assert EmbeddedSource(**source, password="one").folder in folders
    assert len(folders) == 4
    assert {folder.parent for folder in folders} == {tmp_path}


def test_the_name_of_a_folder_does_not_tell_the_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody can see it in the list of processes: trying passwords out by it must take long."""
    rounds, original = list[int](), hashlib.pbkdf2_hmac

    def derive(name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
        rounds.append(iterations)
        return original(name, password, salt, 1)

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", derive)
    source = EmbeddedSource(host=f"db-{tmp_path.name}", password="a-secret", state_dir=str(tmp_path))
    assert "a-secret" not in str(source.folder)
    assert "a-secret" not in repr(source)
    assert min(rounds) >= 100_000


def test_what_a_capture_keeps_is_for_its_owner_only(tmp_path: Path) -> None:
    """Also where files are for everybody unless their program says otherwise."""
    state, before = tmp_path / "state", os.umask(0)
    source = EmbeddedSource(path=str(shop_folder(tmp_path / "logs")), state_dir=str(state))
    try:
        address = find_or_start(source, START_S)
    finally:
        os.umask(before)
    server = LocalProcess.parse(json.loads((source.folder / "server.json").read_text())["process"])
    try:
        assert {path.stat().st_mode & 0o077 for path in (state, *state.rglob("*"))} == {0}
        assert len(address.token) >= 32
        command = Path(f"/proc/{server.pid}/cmdline").read_bytes()
        assert address.token.encode() not in command
        assert find_or_start(source, START_S) == address  # who comes later finds it
    finally:
        os.kill(server.pid, signal.SIGTERM)
    assert poll_until(lambda: not server.is_alive, 30)


_START_AND_WAIT = """
import select, sys, time
from penstock.client.embedded import EmbeddedSource, _started, find_or_start

def wait(*_):
    print(_started[-1].pid, flush=True)
    time.sleep(600)

select.select = wait  # for the answer of the server, which has its settings
find_or_start(EmbeddedSource(path=sys.argv[1], state_dir=sys.argv[2]), 120)
"""


def test_a_capture_whose_starter_is_killed_is_waited_for_and_used(tmp_path: Path) -> None:
    source = EmbeddedSource(path=str(shop_folder(tmp_path / "logs")), state_dir=str(tmp_path / "state"))
    command = [sys.executable, "-c", _START_AND_WAIT, source.path, source.state_dir]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        server = LocalProcess.find(int(starter.stdout.readline()))
        starter.kill()
    try:
        find_or_start(source, START_S)
        assert json.loads((source.folder / "server.json").read_text())["process"] == server.to_text()
        assert not FileLock(source.folder / "lock").is_taken()
    finally:
        os.kill(server.pid, signal.SIGTERM)
    assert poll_until(lambda: not server.is_alive, 30)


def test_a_capture_that_does_not_start_in_time_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its database accepts the connection, and says nothing; the next one that comes may start it again."""
    monkeypatch.setattr(embedded, "LEAST_START_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        source = EmbeddedSource(host="127.0.0.1", port=silent.getsockname()[1], state_dir=str(tmp_path))
        client, began = FlightClient(source, retry_timeout_s=1), time.monotonic()
        with pytest.raises(ServerUnavailableError, match=r"was not ready after \d s: give it longer .* waitForServer"):
            client.source_start()
        assert embedded._started[-1].wait(START_S) == -signal.SIGKILL
        lock = FileLock(source.folder / "lock")  # of another process that starts it
        lock.acquire()
        with pytest.raises(ServerUnavailableError, match=r"is being started by another process, .* waitForServer"):
            find_or_start(source, 0)
        lock.release()
    assert time.monotonic() - began < START_S
