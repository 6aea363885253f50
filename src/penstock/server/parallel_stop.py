"""Stops several things in parallel, within one time limit."""

import logging
import threading
import time
from collections.abc import Callable, Mapping

log = logging.getLogger(__name__)


def stop_in_parallel(steps: Mapping[str, Callable[[], object]], timeout_s: float) -> list[str]:
    """Run all steps in parallel, each in a daemon thread; return the names of those that have not ended in time.

    A step that raises has ended: its error is logged, and the others continue.
    """
    until = time.monotonic() + timeout_s
    threads = {
        name: threading.Thread(target=_run, args=(name, step), name=f"penstock-stop-{name}", daemon=True)
        for name, step in steps.items()
    }
    for thread in threads.values():
        thread.start()
    for thread in threads.values():
        thread.join(max(0.0, until - time.monotonic()))
    return [name for name, thread in threads.items() if thread.is_alive()]


def _run(name: str, step: Callable[[], object]) -> None:
    try:
        step()
    except Exception:
        log.exception("part of the server not stopped part=%s", name)
