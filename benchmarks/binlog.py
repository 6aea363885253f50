"""Logs that real servers wrote, through `mysqlbinlog -v`, python-mysql-replication and our decoder; each on one core.

The first run makes the logs, about 1.1 GB, and keeps them in the cache. What is compared is all columns of all row
images: to text by `mysqlbinlog -v`, to Python objects by python-mysql-replication, to Arrow with checksums verified
by us. Beside it stands the same with the change columns (kind, position, time, GTID, what changed), which the others do
not make. Our time is that of a process whose kernels are loaded; loading them is measured by `benchmarks/startup.py`.
The headline is the orders log of the server whose own tool does better against us. CPU time is printed beside, since
it hardly changes when the machine is busy with something else.
"""

from dataclasses import dataclass
from typing import Any

from benchmarks._binlog_logs import Log, logs_of, say, tool_of
from benchmarks._binlog_readers import Penstock, Speed, Time, follow, one_core, run_tool
from benchmarks._binlog_shapes import MARIADB, MYSQL, ORDERS
from benchmarks._report import print_figures, print_table
from benchmarks._scale import scaled

ROUNDS = scaled(3, 1)
FOLLOWED_ROWS = scaled(10_000, 200)
SERVERS = (MARIADB, MYSQL)


@dataclass(frozen=True, slots=True)
class Result:
    log: Log
    tool: Speed
    columns: Speed
    changes: Speed

    @property
    def figures(self) -> dict[str, Any]:
        facts = {"server": self.log.version, "log": self.log.shape.name, "size_mb": round(self.log.size / 1e6)}
        speeds = {"mysqlbinlog": self.tool, "penstock": self.columns, "penstock_changes": self.changes}
        ratios = dict(zip(("ratio", "ratio_of_cpu"), map(_short, self.columns.ratios(self.tool)), strict=True))
        with_changes = {"ratio_with_change_columns": _short(self.changes.ratios(self.tool)[0])}
        return facts | {name: _rounded(speed) for name, speed in speeds.items()} | ratios | with_changes


def measure(log: Log, tool: list[str], penstock: Penstock) -> Result:
    """Medians; they take turns, so that a busy moment hits all alike."""
    theirs, columns, changes = list[Time](), list[Time](), list[Time]()
    log.path.read_bytes()  # from here on in the system's cache
    for _ in range(ROUNDS):
        theirs.append(run_tool(tool, log))
        columns.append(penstock.decode("columns", log))
        changes.append(penstock.decode("changes", log))
    speeds = (Speed.of(times, log.size, log.shape.images()) for times in (theirs, columns, changes))
    return Result(log, *speeds)


def main() -> None:
    logs = [log for server in SERVERS for log in logs_of(server)]
    tools = {server: tool_of(server) for server in SERVERS}
    followed = {server: follow(server, ORDERS, FOLLOWED_ROWS, ROUNDS) for server in SERVERS}
    results: list[Result] = []
    with one_core(), Penstock() as penstock:
        for log in logs:
            say(f"{log.server}: reading {log.size / 1e6:,.0f} MB, {log.shape.label}")
            results.append(measure(log, tools[log.server], penstock))
    peers = {server: speed for server, speed in followed.items() if speed}
    _print_tables(results, peers)
    _print_last(results, peers)


def _print_tables(results: list[Result], peers: dict[str, Speed]) -> None:
    print_table(
        f"logs of real servers, one core, median of {ROUNDS}: MB/s and row images/s",
        [
            "log", "server", "MB", "images", "mysqlbinlog -v", "", "penstock", "", "ratio", "of CPU time",
            "with change columns", "ratio",
        ],
        [
            [
                result.log.shape.label, result.log.server, f"{result.log.size / 1e6:,.0f}", f"{result.tool.images:,}",
                *_cells(result.tool), *_cells(result.columns), *map(_times, result.columns.ratios(result.tool)),
                f"{result.changes.mb_per_s:,.1f}", _times(result.changes.ratios(result.tool)[0]),
            ]
            for result in results
        ],
    )  # fmt: skip
    ours = {result.log.server: result.columns for result in results if result.log.shape is ORDERS}
    if peers:
        print_table(
            f"python-mysql-replication, {ORDERS.label}, {ORDERS.images(FOLLOWED_ROWS):,} row images from the server",
            ["server", "MB/s", "images/s", "ratio", "of CPU time"],
            [[name, *_cells(peer), *map(_times, ours[name].ratios(peer))] for name, peer in peers.items()],
        )


def _print_last(results: list[Result], peers: dict[str, Speed]) -> None:
    rated = [(result.columns.ratios(result.tool)[0] or 0, result) for result in results]
    ratio, headline = min((pair for pair in rated if pair[1].log.shape is ORDERS), key=lambda pair: pair[0])
    worst, slowest = min(rated, key=lambda pair: pair[0])
    ours = headline.columns
    by_clock, by_cpu = ours.ratios(peers.get(headline.log.server))
    print_figures(
        "binlog",
        {
            "ratio_mysqlbinlog": _short(ratio),
            "ratio_python_mysql_replication": _short(by_clock),
            "mb_per_s": _short(ours.mb_per_s),
            "worst_ratio_mysqlbinlog": _short(worst),
            "worst": f"{slowest.log.shape.name} of {slowest.log.server}",
            "ratio_of_cpu_mysqlbinlog": _short(ours.ratios(headline.tool)[1]),
            "ratio_of_cpu_python_mysql_replication": _short(by_cpu),
            "ratio_with_change_columns": _short(headline.changes.ratios(headline.tool)[0]),
            "worst_ratio_with_change_columns": _short(min(r.changes.ratios(r.tool)[0] or 0 for r in results)),
            "headline": headline.log.server,
            "logs": [result.figures for result in results],
            "python_mysql_replication": {server: _rounded(peer) for server, peer in peers.items()},
        },
    )


def _cells(speed: Speed) -> list[str]:
    return [f"{speed.mb_per_s:,.1f}", f"{speed.images_per_s:,.0f}"]


def _times(ratio: float | None) -> str:
    return f"{ratio:,.1f}x" if ratio else "n/a"


def _rounded(speed: Speed) -> dict[str, float]:
    return {"mb_per_s": round(speed.mb_per_s, 1), "images_per_s": round(speed.images_per_s)}


def _short(number: float | None) -> float | None:
    return None if number is None else round(number, 2)


if __name__ == "__main__":
    main()
