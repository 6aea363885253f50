"""The heap of Spark's Python workers.

After every task a worker that Spark reuses looks through all its objects for cycles. Modules, kernels and classes are
48,000 objects, which never go away: that took 20 ms of CPU a task, and the next task waited for it.
"""

import gc

_is_frozen = False


def freeze_loaded_objects() -> None:
    """Exclude all objects that are loaded now from garbage collection, once per process; later ones are collected as
    usual."""
    global _is_frozen  # noqa: PLW0603 - there is one heap in a process
    if not _is_frozen:
        _is_frozen = True
        gc.collect()  # garbage must not be frozen
        gc.freeze()
