"""What is loaded in a worker is left out of the garbage collections between its tasks."""

import subprocess
import sys

_PROGRAM = """
import gc
from penstock.spark.worker_heap import freeze_loaded_objects

class Node: pass

freeze_loaded_objects()
frozen = gc.get_freeze_count()
assert frozen > 1000, frozen
later = [[] for _ in range(100)]
freeze_loaded_objects()
assert gc.get_freeze_count() <= frozen  # only once
node = Node()
node.itself = node
del node
assert gc.collect() > 0  # cycles of later objects are still found
print("ok")
"""


def test_objects_are_frozen_once_and_later_cycles_are_collected() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "ok\n", done.stderr
