"""The process runner, on programs that every machine has."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from penstock.errors import ServerStartError
from penstock.testing import ServerProcess, free_port, poll_until


def is_running(pid: int) -> bool:
    """Not gone, and not merely waiting for its parent to collect it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def program_of(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def shell(script: str, log: Path) -> ServerProcess:
    return ServerProcess.start("the server", ["sh", "-c", script], log=log)


def wait_for(log: Path, text: str, process: ServerProcess) -> None:
    process.wait_until_ready(lambda: text in log.read_text(), timeout_s=30)


def test_a_server_runs_in_a_group_of_its_own_and_ends_on_term(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = shell("trap 'echo bye; exit' TERM; echo up; while :; do sleep 0.01; done", log)
    wait_for(log, "up", process)
    assert os.getpgid(process.pid) == process.pid

    process.stop()

    assert log.read_text().endswith("bye\n")
    assert not is_running(process.pid)
    process.stop()  # again is nothing


def test_what_ignores_term_is_killed_with_its_children(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = shell("trap '' TERM; sleep 1000 & echo child=$!=; wait", log)
    wait_for(log, "child=", process)
    child = int(log.read_text().split("=")[1])

    process.stop(timeout_s=0.2)

    assert poll_until(lambda: not is_running(child), timeout_s=30)
    assert not is_running(process.pid)


def test_stop_waits_for_a_server_that_outlives_its_start_program(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = shell("(trap 'sleep 0.3; echo bye; exit' TERM; echo up; while :; do sleep 0.01; done) & wait", log)
    wait_for(log, "up", process)

    process.stop()

    assert log.read_text().endswith("bye\n")


def test_a_server_that_exits_early_shows_the_end_of_its_log_at_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = shell("seq 1 40; echo '\tat some.java.Frame(File.java:1)'; echo no such option; exit 3", log)

    with pytest.raises(ServerStartError) as caught:
        process.wait_until_ready(lambda: False, timeout_s=60)

    message = str(caught.value)
    assert message.startswith(f"the server exited with status 3; the end of {log}:\n  27\n")
    assert message.endswith("\n  40\n  no such option")


def test_a_server_ended_by_a_signal_is_said_so(tmp_path: Path) -> None:
    process = shell("kill -ABRT $$", tmp_path / "log")

    with pytest.raises(ServerStartError, match="ended by SIGABRT"):
        process.wait_until_ready(lambda: False, timeout_s=60)


def test_a_server_that_never_answers_is_ended(tmp_path: Path) -> None:
    process = shell("echo starting; exec sleep 1000", tmp_path / "log")

    with pytest.raises(ServerStartError, match=r"was not ready after 0\.5 s"):
        process.wait_until_ready(lambda: False, timeout_s=0.5)

    assert not is_running(process.pid)


def test_an_error_while_asking_ends_the_server(tmp_path: Path) -> None:
    process = shell("exec sleep 1000", tmp_path / "log")

    with pytest.raises(ZeroDivisionError):
        process.wait_until_ready(lambda: 1 / 0 > 0, timeout_s=5)

    assert not is_running(process.pid)


def test_a_missing_program_is_an_error(tmp_path: Path) -> None:
    process = ServerProcess.start("the server", ["no-such-program"], log=tmp_path / "log")

    with pytest.raises(ServerStartError, match="no-such-program"):
        process.wait_until_ready(lambda: False, timeout_s=30)


def test_a_machine_without_setpriv_gets_told_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ServerStartError, match="install util-linux"):
        shell("true", tmp_path / "log")


def test_a_server_survives_the_thread_that_started_it(tmp_path: Path) -> None:
    started: list[ServerProcess] = []

    def start() -> None:
        process = shell("exec sleep 1000", tmp_path / "log")
        # The kernel's order to die with the parent is in force once the program has replaced setpriv.
        assert poll_until(lambda: program_of(process.pid) == "sleep", timeout_s=30)
        started.append(process)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()

    assert not poll_until(started[0].has_exited, timeout_s=0.3)
    started[0].kill()


PARENT = """
import sys, threading
from pathlib import Path
from penstock.testing import ServerProcess
user = sys.argv[2] if len(sys.argv) > 2 else None
process = ServerProcess.start("server", ["sleep", "1000"], log=Path(sys.argv[1]), user=user)
print(process.pid, flush=True)
threading.Event().wait()
"""


@pytest.mark.parametrize(
    "user",
    [None, pytest.param("nobody", marks=pytest.mark.skipif(os.geteuid() != 0, reason="changing users needs root"))],
)
def test_a_server_is_gone_when_its_parent_was_killed(tmp_path: Path, user: str | None) -> None:
    arguments = [sys.executable, "-c", PARENT, str(tmp_path / "log"), *([user] if user else [])]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as parent:
        try:
            assert parent.stdout is not None
            server = int(parent.stdout.readline())
            assert poll_until(lambda: program_of(server) == "sleep", timeout_s=30)
            assert (Path(f"/proc/{server}").stat().st_uid == os.geteuid()) == (user is None)
        finally:
            parent.send_signal(signal.SIGKILL)

    assert poll_until(lambda: not is_running(server), timeout_s=30)


def test_a_free_port_can_be_listened_on() -> None:
    with socket.create_server(("127.0.0.1", free_port())) as listener:
        assert listener.getsockname()[1] >= 1024


def test_a_free_port_is_reserved_for_this_process_and_never_given_to_an_outgoing_connection() -> None:
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    ports = [free_port() for _ in range(50)]
    script = "from penstock.testing import free_port\nprint(*(free_port() for _ in range(50)))"
    others = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert len({*ports, *map(int, others)}) == 100
    assert not [port for port in ports if first <= port <= last]
    with socket.socket(socket.AF_UNIX) as other, pytest.raises(OSError, match="in use"):
        other.bind(f"\0penstock-port-{ports[0]}")
