"""Stores and meta.dat on a real disk that fills up, or turns read-only, and has room again.

Each case is a function of `small_disk_script`, in a process and a mount namespace of its own: its disk goes with it.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., None]
_ROOT = Path(__file__).parents[3]
_DEADLINE_S = 60.0


@pytest.fixture(scope="session")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """How a command is run that may mount."""
    tool = shutil.which("unshare")
    if tool is None:
        pytest.skip("a disk of one's own needs unshare, and there is none")
    says, folder = "", str(tmp_path_factory.mktemp("disk"))
    for flags in ("-m", "-Urm") if os.geteuid() == 0 else ("-Urm",):
        command = [tool, flags, "mount", "-t", "tmpfs", "tmpfs", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return [tool, flags]
        says = done.stderr.strip()
    pytest.skip(f"a disk of one's own cannot be mounted: {says}")


@pytest.fixture
def run(namespace: list[str], tmp_path: Path) -> Run:
    def run(case: str, *kinds: str) -> None:
        command = [*namespace, sys.executable, "-m", "tests.support.small_disk_script", case, str(tmp_path), *kinds]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=_ROOT, timeout=_DEADLINE_S)
        assert done.returncode == 0, done.stderr
        assert not [path for path in tmp_path.rglob("*") if path.is_file()]  # they were on the disk that went

    return run


class TestFullFileStore:
    def test_puts_wait_and_continue_when_acks_make_room(self, run: Run) -> None:
        run("full_until_acked")

    def test_puts_wait_and_continue_when_the_disk_grows(self, run: Run) -> None:
        run("full_until_larger")

    def test_it_is_opened_while_the_disk_is_full(self, run: Run) -> None:
        run("full_and_opened_again")

    def test_a_smaller_put_after_one_that_was_refused(self, run: Run) -> None:
        run("smaller_after_refused")

    def test_all_of_several_go_in_or_none(self, run: Run) -> None:
        run("some_of_several_refused")

    @pytest.mark.parametrize("kind", ["file", "mixed"])
    def test_the_last_ack_comes_while_a_write_fails(self, run: Run, kind: str) -> None:
        run("acked_while_it_writes", kind)

    def test_a_disk_without_room_for_another_file(self, run: Run) -> None:
        run("no_more_files")


class TestReadOnly:
    def test_puts_wait_and_continue(self, run: Run) -> None:
        run("read_only_for_a_while")

    @pytest.mark.parametrize("kind", ["file", "mixed"])
    def test_acks_count(self, run: Run, kind: str) -> None:
        run("acks_while_read_only", kind)

    def test_a_client_is_forgotten(self, run: Run) -> None:
        run("forgotten_while_read_only")

    def test_an_incomplete_transaction_is_dropped(self, run: Run) -> None:
        run("reconnects_while_read_only")


class TestOpening:
    """An error that names the folder, and once there is room, nothing is left of it."""

    def test_a_store_on_a_read_only_disk(self, run: Run) -> None:
        run("opened_on_read_only", "missing", "empty", "used")

    def test_a_store_without_room(self, run: Run) -> None:
        run("opened_without_room", "missing", "empty")

    def test_meta_on_a_read_only_disk(self, run: Run) -> None:
        run("meta_on_read_only", "missing", "used")


class TestMixedStore:
    def test_a_slow_client_makes_puts_wait_and_a_fast_one_does_not_notice(self, run: Run) -> None:
        run("mixed_waits", "full", "read-only")

    def test_puts_continue_when_acks_make_room(self, run: Run) -> None:
        run("mixed_until_acked")

    def test_it_is_stopped_while_the_disk_is_full(self, run: Run) -> None:
        run("mixed_stopped_while_full")

    def test_the_connection_breaks_while_the_disk_is_full(self, run: Run) -> None:
        run("mixed_cut_while_full")


class TestMeta:
    def test_what_cannot_be_kept_before_does_not_count(self, run: Run) -> None:
        run("meta_before", "full", "read-only")

    def test_what_cannot_be_kept_afterwards_is_kept_when_there_is_room(self, run: Run) -> None:
        run("meta_afterwards", "full", "read-only")

    def test_it_is_stopped_while_the_disk_is_full(self, run: Run) -> None:
        run("meta_stopped_while_full")
