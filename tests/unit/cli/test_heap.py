"""What is freed stays with the process."""

import subprocess
import sys

_FAULTS = """
import resource
import sys
import numpy as np
from penstock.cli.heap import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
for _ in range(20):
    parts = [np.zeros(3 << 20, np.uint8) + 1 for _ in range(8)]
    del parts
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


def _faults(setting: str) -> int:
    return int(subprocess.run([sys.executable, "-c", _FAULTS, setting], capture_output=True, check=True).stdout)


def test_memory_is_reused_for_every_block() -> None:
    assert 4 * _faults("kept") < _faults("given back")
