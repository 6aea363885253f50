"""The folder of a run: locked while it lives, gone at its end, removed by the next run when it was killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from penstock.testing import DatabaseServer, ServerProcess
from tests.support.server_folders import fill_data_folder, remove_abandoned, run_folder

_HOLD = (
    "import sys, time; from pathlib import Path; from tests.support.server_folders import run_folder\n"
    "with run_folder(Path(sys.argv[1])) as folder: print(folder, flush=True); time.sleep(60)"
)


class Recorded(DatabaseServer):
    """Counts how often data is created; it is never started."""

    name = "recorded"
    created = 0

    def command(self) -> list[str]:
        raise NotImplementedError

    def defaults(self) -> dict[str, str | int | None]:
        raise NotImplementedError

    def launch(self) -> ServerProcess:
        raise NotImplementedError

    def initialise(self, data: Path) -> None:
        Recorded.created += 1
        (data / "auto.cnf").write_text("server-uuid=1")
        (data / "mysql").mkdir()
        (data / "mysql" / "user.ibd").write_bytes(bytes(1 << 16) + b"root")


def test_it_is_there_for_others_and_gone_at_the_end(tmp_path: Path) -> None:
    with run_folder(tmp_path) as folder:
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o777 == 0o755
    assert not folder.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_lives_keeps_its_folder_and_a_killed_one_does_not(tmp_path: Path) -> None:
    with run_folder(tmp_path) as living:
        command = [sys.executable, "-c", _HOLD, str(tmp_path)]
        run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3])
        with run:
            assert run.stdout is not None
            other = Path(run.stdout.readline().strip())
            remove_abandoned(tmp_path)
            assert other.is_dir()
            os.kill(run.pid, signal.SIGKILL)
        assert other.is_dir()
        remove_abandoned(tmp_path)
        assert not other.exists()
        assert living.is_dir()


def test_folders_of_others_are_not_touched(tmp_path: Path) -> None:
    strange = tmp_path / "penstock-test-strange"
    strange.mkdir()
    remove_abandoned(tmp_path)
    assert strange.is_dir()


def test_data_is_created_once_and_each_server_has_a_copy_and_an_identity_of_its_own(tmp_path: Path) -> None:
    Recorded.created = 0
    servers = [Recorded(tmp_path / name) for name in ("one", "two")]
    for server in servers:
        fill_data_folder(server, "recorded", tmp_path)
    assert Recorded.created == 1
    for server in servers:
        assert (server.data / "mysql" / "user.ibd").read_bytes() == bytes(1 << 16) + b"root"
        assert not (server.data / "auto.cnf").exists()
