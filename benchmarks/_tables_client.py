"""A reader of JSON rows over Arrow Flight as a process of its own, with pyarrow alone: reads rows of all tables of a
database until it has so many, and says how long it took. What it is to do comes as JSON on standard input."""

import json
import sys
import time

import pyarrow.flight as fl


def main() -> None:
    asked = json.loads(sys.stdin.readline())
    ticket = {"destination": "shop", "tables": [], "form": "decoded", "start": "stored"}
    client = fl.connect(f"grpc://127.0.0.1:{asked['port']}")
    stream = client.do_get(fl.Ticket(json.dumps(ticket)))
    count, begun = 0, 0.0
    while count < asked["rows"]:
        count += stream.read_chunk().data.num_rows
        begun = begun or (time.perf_counter() if count else 0.0)
    print(json.dumps({"rows": count, "seconds": time.perf_counter() - begun}), flush=True)


if __name__ == "__main__":
    main()
