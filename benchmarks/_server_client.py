"""A client as a process of its own: reads until it has so many rows, or one row after the other, and says how long it
took. What it is to do comes as JSON on standard input."""

import json
import sys
import time
from typing import Any

from penstock.cli.heap import keep_freed_memory
from penstock.client.canal import CanalConnector


def consume(connector: CanalConnector, rows: int, size: int) -> dict[str, Any]:
    """Every row change is parsed, and nothing is done with it, as in the program around the Java client."""
    count = 0
    begun = 0.0
    while count < rows:
        message = connector.get_without_ack(size, timeout_s=1)
        begun = begun or time.perf_counter()
        for _, change in message.row_changes():
            count += len(change.rowDatas)
        connector.ack(message.id)
    return {"rows": count, "seconds": time.perf_counter() - begun}


def latencies(connector: CanalConnector, rows: int) -> dict[str, Any]:
    """The second column of each row says when it was written, in microseconds."""
    micros = list[float]()
    while len(micros) < rows:
        message = connector.get_without_ack(1000, timeout_s=1)
        now = time.time() * 1e6
        for _, change in message.row_changes():
            micros += [now - int(row.afterColumns[1].value) for row in change.rowDatas]
        connector.ack(message.id)
    return {"micros": micros}


def main() -> None:
    keep_freed_memory()
    asked = json.loads(sys.stdin.readline())
    with CanalConnector("127.0.0.1", asked["port"], asked["destination"], client_id=asked["client"]) as connector:
        connector.subscribe(asked["filter"])
        print("{}", flush=True)
        sys.stdin.readline()
        do = latencies if asked["what"] == "latency" else consume
        print(json.dumps(do(connector, asked["rows"], *([asked["size"]] if do is consume else []))), flush=True)


if __name__ == "__main__":
    main()
