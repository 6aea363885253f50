"""Capture beside the server's own tool: the same log file of the same server, over the network.

`mysqlbinlog --raw` copies the bytes of a log into files and looks at hardly anything. An instance checks every
checksum, indexes every event, keeps them in a store in memory, and gives them to a client that acks them. Both are
processes of their own, one after the other, several times; `ratio_raw` is how much of the tool's MB/s the instance has
for 2 GB of transactions of many rows, `ratio_raw_single_row` for those of one row. One transaction of 5 million rows
goes through a store of 16 MiB. Peaks are those of the whole process.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks._binlog_logs import Log, logs_of, say, served, tool_of
from benchmarks._binlog_shapes import HUGE, MARIADB, MYSQL, ORDERS, TINY
from benchmarks._report import print_figures, print_table
from benchmarks._scale import scaled
from penstock.testing import DatabaseServer

ROUNDS = scaled(5, 1)
_COPIES = {ORDERS.name: scaled(7, 1), TINY.name: scaled(3, 1)}  # of the log, one file after the other
_HUGE_STORE = 16 << 20


def follow(server: DatabaseServer, log: Log, files: list[str], store_bytes: int) -> dict[str, float]:
    source = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    instance = {"source": source | {"tls": "disabled"}, "start": f"{files[0]}:4", "store": {"memory": store_bytes}}
    asked = json.dumps({"instance": instance, "end": f"{files[-1]}:{log.size}"})
    command = [sys.executable, "-m", "benchmarks._capture_run"]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise RuntimeError(done.stderr)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def copy(server: DatabaseServer, tool: list[str], files: list[str], folder: Path) -> float:
    """Seconds of the server's own tool."""
    command = [*tool, "--no-defaults", "--read-from-remote-server", "--raw", f"--result-file={folder}/"]
    command += [f"--host={server.host}", f"--port={server.port}", f"--user={server.user}", *files]
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={"MYSQL_PWD": server.password})  # noqa: S603
    took = time.perf_counter() - began
    for file in files:
        (folder / file).unlink()
    return took


@contextmanager
def scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    yield folder
    shutil.rmtree(folder)


def compare(log: Log, rows: list[list[str]]) -> float:
    """How much of the tool's speed an instance has."""
    tool = tool_of(log.server)
    copies = _COPIES[log.shape.name]
    size = log.size * copies
    say(f"{log.server}, {log.shape.label}: {size / 1e6:,.0f} MB")
    with served(log, copies) as (server, files), scratch() as folder:
        copy(server, tool, files, folder)  # the server's cache is warm then
        pairs = [(copy(server, tool, files, folder), follow(server, log, files, 64 << 20)) for _ in range(ROUNDS)]
    copied, followed = median(took for took, _ in pairs), median(answer["seconds"] for _, answer in pairs)
    ratio = median(took / answer["seconds"] for took, answer in pairs)
    peak = max(answer["peak_mib"] for _, answer in pairs)
    speeds = [f"{size / took / 1e6:,.0f}" for took in (copied, followed)]
    rows.append([log.server, log.shape.label, *speeds, f"{ratio:.2f}", f"{peak:,.0f}"])
    return ratio


def main() -> None:
    figures: dict[str, Any] = {}
    rows: list[list[str]] = []
    for name, shape in (("ratio_raw", ORDERS), ("ratio_raw_single_row", TINY)):
        ratios = [compare(log, rows) for kind in (MARIADB, MYSQL) for log in logs_of(kind, [shape])]
        figures[name] = round(min(ratios), 2)
    (huge,) = logs_of(MARIADB, [HUGE])
    say(f"{huge.shape.label}, a store of {_HUGE_STORE >> 20} MiB")
    with served(huge) as (server, files):
        answer = follow(server, huge, files, _HUGE_STORE)
    speed = f"{huge.size / answer['seconds'] / 1e6:,.0f}"
    rows.append([huge.server, huge.shape.label, "", speed, "", f"{answer['peak_mib']:,.0f}"])
    figures["peak_mib_5m_rows"] = round(answer["peak_mib"])
    head = ["server", "log", "mysqlbinlog --raw MB/s", "capture MB/s", "ratio", "peak MiB"]
    print_table("a log over the network, medians", head, rows)
    print_figures("capture", figures)


if __name__ == "__main__":
    main()
