"""Processes of this machine, told apart and watched."""

import subprocess
import sys

import pytest

from penstock.local_process import LocalProcess


def test_a_process_is_alive_until_it_ends_also_before_its_parent_collects_it() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        process = LocalProcess.find(child.pid)
        assert process.is_alive
        assert LocalProcess.parse(process.to_text()) == process
        assert not LocalProcess(process.pid, process.began - 1).is_alive  # another one that had the same id
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.close()
        child.stdout.read()
        assert child.returncode is None  # not collected yet
    assert not process.is_alive


def test_a_text_that_names_no_process_is_an_error() -> None:
    for text in ("", "12", "a-b", "1-2-3"):
        with pytest.raises(ValueError, match=r"."):
            LocalProcess.parse(text)
