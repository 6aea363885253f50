"""Follows one log file of a server into a store in memory while a client gets and acks; a process of its own.

The settings of the instance and where the log ends come as JSON on its input; seconds and the peak of its memory go, as
JSON, to its output.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from penstock.cli.heap import keep_freed_memory
from penstock.config import InstanceSettings
from penstock.instance import Instance
from penstock.model import Position
from penstock.store import BatchSize, Start

_CLIENT = 1001
_SIZE = BatchSize(1 << 11, "memory")  # 2 MiB
_GET_TIMEOUT_S = 0.01  # for a full batch; the last one never is


def peak_mib() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def main() -> None:
    asked: dict[str, Any] = json.load(sys.stdin)
    keep_freed_memory()
    instance, end = Instance(InstanceSettings.model_validate(asked["instance"])), Position.parse(asked["end"])
    before = peak_mib()
    began = time.perf_counter()
    instance.start()
    clients = instance.clients
    clients.subscribe(_CLIENT, "", Start.stored())
    while instance.store.acked < end:
        got = clients.get(_CLIENT, _SIZE, _GET_TIMEOUT_S)
        if got is not None:
            clients.ack(_CLIENT, got[0])
    took = time.perf_counter() - began
    answer = {"seconds": took, "peak_mib": peak_mib(), "before_mib": before}
    instance.stop()
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
