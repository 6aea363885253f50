"""How fast a search server takes documents that are new to it, when nothing but bulk requests is sent; and damage."""

import time

import pyarrow as pa

from benchmarks._index_bulk import build_bodies, send_bodies
from penstock.search import OPERATIONS
from penstock.search.http import HttpIndex
from penstock.search.http_requests import IndexRequests
from penstock.search.transport import PooledTransport

_CONNECTIONS = (1, 2)
_TIMEOUT_S = 120.0


def measure_fresh_bulk(url: str, index: str) -> float:
    """Return how many documents of an index its server takes in a second in an empty one, the better of one and two
    connections; refreshed at the end."""
    with HttpIndex.open(url, index) as filled:
        documents = filled.documents()
    transport = PooledTransport(url, timeout_s=_TIMEOUT_S)
    existing = IndexRequests(transport, index)
    bodies = build_bodies(documents, 1)
    rates = list[float]()
    try:
        (layout,) = existing.request_json("GET", "").values()
        settings = {"refresh_interval": "-1", "number_of_replicas": 0}
        settings["gc_deletes"] = layout["settings"]["index"]["gc_deletes"]
        for connections in _CONNECTIONS:
            requests = IndexRequests(transport, f"bulk-{connections}")
            requests.request_json("PUT", "", {"mappings": layout["mappings"], "settings": {"index": settings}})
            began = time.perf_counter()
            send_bodies(requests, bodies, connections)
            rates.append(documents.num_rows / (time.perf_counter() - began))
            requests.request_json("DELETE", "")
        return max(rates)
    finally:
        transport.close()


def damage_documents(url: str, index: str, count: int) -> None:
    """Delete some documents of an index behind the back of whoever keeps it."""
    with HttpIndex.open(url, index) as search:
        some = next(iter(search.scan_documents()))
        while some.num_rows < count:
            some = search.documents().slice(0, count)
        some = some.slice(0, count)
        columns = {"id": some.column("id"), "version": some.column("version")}
        columns |= {name: pa.nulls(some.num_rows, pa.string()) for name in ("document", "routing")}
        search.write(pa.table([columns[part.name] for part in OPERATIONS], schema=OPERATIONS))
        search.refresh()
