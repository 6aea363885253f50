"""A lease that other processes of the machine read from a file."""

import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.coordinate import Fence, LeaseFile, LeasePublisher
from penstock.coordinate.lease import Lease, LeaseGuard, boot_clock
from penstock.coordinate.term_files import find_ended_term, lease_of_term
from penstock.errors import ConfigurationError, FencedError
from penstock.testing import poll_until

_PUBLISHER = """
import sys
from pathlib import Path
from penstock.coordinate import Fence, LeasePublisher
from penstock.coordinate.lease import Lease, LeaseGuard, boot_clock
lease = Lease()
lease.renew(boot_clock() + 1000)
LeasePublisher(Path(sys.argv[1]), Fence(1, "/epoch", 0, LeaseGuard(lease))).start()
print("published", flush=True)
sys.stdin.read()
"""


def is_held(file: LeaseFile) -> bool:
    try:
        file.require()
    except FencedError:
        return False
    return True


def test_it_lasts_as_long_as_the_lease_and_its_use(tmp_path: Path) -> None:
    lease = Lease()
    lease.renew(boot_clock() + 1000)
    guard = LeaseGuard(lease)
    file = LeaseFile(tmp_path / "term-1.lease")
    with pytest.raises(FencedError, match="term-1: the driver has ended or has lost its lease"):
        file.require()
    with LeasePublisher(file.path, Fence(1, "/epoch", 0, guard)):
        assert is_held(pickle.loads(pickle.dumps(file)))  # noqa: S301 - ours
        assert not file.has_died()
        end = lease.until
        assert not is_held(LeaseFile(file.path, clock=lambda: end))
        lease.renew(end + 1000)
        assert poll_until(lambda: is_held(LeaseFile(file.path, clock=lambda: end)), 30)
        guard.end()
        assert poll_until(lambda: not is_held(file), 30)
        assert not file.has_died()
    assert file.has_died()


def test_a_process_that_is_killed_has_died_and_a_frozen_one_has_not(tmp_path: Path) -> None:
    assert find_ended_term(tmp_path / "none") is None
    path = lease_of_term(tmp_path, 7)
    lease_of_term(tmp_path, 6).write_bytes(b"")  # of a process that ended before it wrote
    assert find_ended_term(tmp_path) is None
    command = [sys.executable, "-c", _PUBLISHER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"published\n"
        assert is_held(LeaseFile(path))
        process.send_signal(signal.SIGSTOP)
        assert find_ended_term(tmp_path) is None
        process.kill()
        process.wait()
    assert find_ended_term(tmp_path) == 7
    assert not is_held(LeaseFile(path))
    path.write_bytes(path.read_bytes()[:8] + b"another boot")  # on a folder that machines share
    assert find_ended_term(tmp_path) is None


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    told = re.escape(f"cannot keep a lease in {tmp_path / 'file' / 'term-1.lease'}")
    with pytest.raises(ConfigurationError, match=told):
        LeasePublisher(tmp_path / "file" / "term-1.lease", Fence(1, "/epoch", 0)).start()
