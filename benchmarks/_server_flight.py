"""A client of Arrow Flight as a process of its own, with pyarrow alone: reads up to a position, or one row after
another, and says how long it took. What it is to do comes as JSON on standard input."""

import json
import sys
import time
from typing import Any

import pyarrow.flight as fl


def consume(stream: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Every batch is read. Decoded images are counted: an insert is one, an update two; raw events are not looked
    into."""
    file, _, offset = asked["end"].rpartition(":")
    count, is_over = 0, False
    while not is_over:
        chunk = stream.read_chunk()
        count += chunk.data.num_rows
        position = json.loads(chunk.app_metadata.to_pybytes())["position"]
        is_over = position["file"] == file and position["offset"] >= int(offset)
    if asked["form"] == "decoded" and count != asked["rows"] // 2 * 3:
        raise RuntimeError(f"{count} images came, {asked['rows'] // 2 * 3} were written")
    return {"rows": asked["rows"]}


def latencies(stream: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """The second column of each row says when it was written, in microseconds; of raw events one is a row."""
    micros, waits = list[float](), asked["rows"]
    while len(micros) < waits:
        chunk = stream.read_chunk()
        now = time.time() * 1e6
        if asked["form"] == "decoded":
            kind, at = chunk.data.column("_change_type").to_pylist(), chunk.data.column("at").to_pylist()
            micros += [
                now - written for change_kind, written in zip(kind, at, strict=True) if change_kind != "update_preimage"
            ]
        else:
            micros += [
                now - int.from_bytes(event[-12:-4], "little") for event in chunk.data.column("event").to_pylist()
            ]
    return {"micros": micros}


def main() -> None:
    asked = json.loads(sys.stdin.readline())
    do, table = (latencies, "tick") if asked["what"] == "latency" else (consume, "t")
    start = "latest" if do is latencies else "stored"
    ticket = {"destination": "shop", "tables": [f"shop.{table}"], "form": asked["form"], "start": start}
    client = fl.connect(f"grpc://127.0.0.1:{asked['port']}")
    print("{}", flush=True)
    sys.stdin.readline()
    begun = time.perf_counter()
    result = do(client.do_get(fl.Ticket(json.dumps(ticket))), asked)
    print(json.dumps(result | {"seconds": time.perf_counter() - begun}), flush=True)


if __name__ == "__main__":
    main()
