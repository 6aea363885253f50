"""Logs that real servers wrote, through `mysqlbinlog -v`, python-mysql-replication and our decoder; each on one core.

The first run makes the logs, about 1.1 GB, and keeps them in the cache. What is compared is all columns of all row
images: to text by `mysqlbinlog -v`, to Python objects by python-mysql-replication, to Arrow with checksums verified
by us. Our time is that of a process whose kernels are loaded; loading them is measured by `benchmarks/startup.py`.
The headline is the orders log of the server whose own tool does better against us. CPU time is printed beside, since
it hardly changes when the machine is busy with something else.
"""

from dataclasses import dataclass
from typing import Any

from benchmarks._binlog_logs import Log, logs_of, say, tool_of
from benchmarks._binlog_readers import Penstock, Speed, Time, follow, one_core, run_tool
from benchmarks._binlog_shapes import MARIADB, MYSQL, ORDERS
from benchmarks._report import print_figures, print_table

ROUNDS = 3
FOLLOWED_ROWS = 10_000
SERVERS = (MARIADB, MYSQL)


@dataclass(frozen=True, slots=True)
class Result:
    log: Log
    tool: Speed
    ours: Speed | None
    why_not: str = ""

    @property
    def ratios(self) -> tuple[float | None, float | None]:
        return self.ours.ratios(self.tool) if self.ours else (None, None)

    @property
    def figures(self) -> dict[str, Any]:
        speeds = {"mysqlbinlog": self.tool, "penstock": self.ours}
        about = {"server": self.log.version, "log": self.log.shape.name, "size_mb": round(self.log.size / 1e6)}
        ratios = dict(zip(("ratio", "ratio_of_cpu"), map(_short, self.ratios), strict=True))
        return about | {name: speed and _rounded(speed) for name, speed in speeds.items()} | ratios


def measure(log: Log, tool: list[str], penstock: Penstock) -> Result:
    """Medians; the two take turns, so that a busy moment hits both alike."""
    images, theirs, ours, why_not = log.shape.images(), list[Time](), list[Time](), ""
    log.path.read_bytes()  # from here on in the system's cache
    for _ in range(ROUNDS):
        theirs.append(run_tool(tool, log))
        answer = penstock.decode(log.path)
        if "error" in answer:
            why_not = answer["error"]
        elif answer["rows"] != images:
            raise RuntimeError(f"{answer['rows']} row images were decoded of {log.path}, {images} were written")
        else:
            ours.append(Time(answer["seconds"], answer["cpu"]))
    tool_speed = Speed.of(theirs, log.size, images)
    return Result(log, tool_speed, Speed.of(ours, log.size, images) if ours else None, why_not)


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
        ["log", "server", "MB", "images", "mysqlbinlog -v", "", "penstock", "", "ratio", "of CPU time"],
        [
            [
                result.log.shape.label, result.log.server, f"{result.log.size / 1e6:,.0f}", f"{result.tool.images:,}",
                *_cells(result.tool), *_cells(result.ours), *map(_times, result.ratios),
            ]
            for result in results
        ],
    )  # fmt: skip
    for result in results:
        if result.why_not:
            print(f"not available: {result.why_not}")
    ours = {result.log.server: result.ours for result in results if result.log.shape is ORDERS and result.ours}
    if peers:
        print_table(
            f"python-mysql-replication, {ORDERS.label}, {ORDERS.images(FOLLOWED_ROWS):,} row images from the server",
            ["server", "MB/s", "images/s", "ratio", "of CPU time"],
            [
                [name, *_cells(peer), *map(_times, ours[name].ratios(peer))]
                for name, peer in peers.items()
                if name in ours
            ],
        )


def _print_last(results: list[Result], peers: dict[str, Speed]) -> None:
    rated = [(ratio, result) for result in results if (ratio := result.ratios[0])]
    orders = [(ratio, result) for ratio, result in rated if result.log.shape is ORDERS]
    ratio, headline = min(orders, key=lambda pair: pair[0], default=(None, None))
    ours = headline.ours if headline else None
    by_clock, by_cpu = ours.ratios(peers.get(headline.log.server)) if ours and headline else (None, None)
    print_figures(
        "binlog",
        {
            "ratio_mysqlbinlog": _short(ratio),
            "ratio_python_mysql_replication": _short(by_clock),
            "mb_per_s": _short(ours.mb_per_s) if ours else None,
            "worst_ratio_mysqlbinlog": _short(min((ratio for ratio, _ in rated), default=None)),
            "ratio_of_cpu_mysqlbinlog": _short(headline.ratios[1]) if headline else None,
            "ratio_of_cpu_python_mysql_replication": _short(by_cpu),
            "headline": headline.log.server if headline else None,
            "not_available": [f"{r.log.shape.name} of {r.log.server}" for r in results if not r.ours],
            "logs": [result.figures for result in results],
            "python_mysql_replication": {server: _rounded(peer) for server, peer in peers.items()},
        },
    )


def _cells(speed: Speed | None) -> list[str]:
    return [f"{speed.mb_per_s:,.1f}", f"{speed.images_per_s:,.0f}"] if speed else ["n/a", "n/a"]


def _times(ratio: float | None) -> str:
    return f"{ratio:,.1f}x" if ratio else "n/a"


def _rounded(speed: Speed) -> dict[str, float]:
    return {"mb_per_s": round(speed.mb_per_s, 1), "images_per_s": round(speed.images_per_s)}


def _short(number: float | None) -> float | None:
    return None if number is None else round(number, 2)


if __name__ == "__main__":
    main()
