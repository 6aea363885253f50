"""How fast a search server takes the documents of an index when nothing but bulk requests is sent to it.

The bodies are built before, with the documents that sync has written, external versions and as many documents as sync
puts into one; the new index has the same mapping and settings. It is filled once, then everything is written again and
timed, as every change of a document that is there: over one connection, and over two.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.document.write import DOCUMENTS_PER_WRITE
from penstock.search import bulk
from penstock.search.bulk import BulkOutcome
from penstock.search.http import HttpIndex
from penstock.search.http_requests import IndexRequests
from penstock.search.transport import PooledTransport

_CONNECTIONS = (1, 2)
_TIMEOUT_S = 120.0


def measure_bulk(url: str, index: str) -> float:
    """Return how many documents of an index its server takes in a second: the better of one and two connections."""
    with HttpIndex.open(url, index) as filled:
        documents = filled.documents()
    transport = PooledTransport(url, timeout_s=_TIMEOUT_S)
    requests = IndexRequests(transport, f"{index}-bulk")
    try:
        _create_like(IndexRequests(transport, index), requests)
        send_bodies(requests, build_bodies(documents, 1), 1)
        rates = list[float]()
        for version, connections in enumerate(_CONNECTIONS, 2):
            bodies = build_bodies(documents, version)
            began = time.perf_counter()
            send_bodies(requests, bodies, connections)
            rates.append(documents.num_rows / (time.perf_counter() - began))
        requests.request_json("DELETE", "")
        return max(rates)
    finally:
        transport.close()


def _create_like(existing: IndexRequests, new: IndexRequests) -> None:
    """Create an index with the mapping and the settings of another."""
    (layout,) = existing.request_json("GET", "").values()
    settings = {name: layout["settings"]["index"][name] for name in ("refresh_interval", "gc_deletes")}
    new.request_json("PUT", "", {"mappings": layout["mappings"], "settings": {"index": settings}})


def build_bodies(documents: pa.Table, version: int) -> list[memoryview]:
    """Return the bodies that write all documents with a version."""
    ids, texts = (documents.column(name).combine_chunks() for name in ("id", "document"))
    lines = bulk.encode_operations(ids, np.full(len(ids), version, np.int64), texts)
    numbers = np.arange(len(lines))
    return [
        bulk.build_bulk_body(lines, numbers[first : first + DOCUMENTS_PER_WRITE])
        for first in range(0, len(lines), DOCUMENTS_PER_WRITE)
    ]


def send_bodies(requests: IndexRequests, bodies: list[memoryview], connections: int) -> None:
    """Send bodies over so many connections, and make all of them searchable."""

    def send(body: memoryview) -> None:
        answer: Any = requests.request("POST", f"/_bulk?filter_path={bulk.FILTER_PATH}", body, "application/x-ndjson")
        requests.check_answer(answer)
        outcomes = bulk.read_answer(answer.content, bytes(body).count(b"\n") // 2).outcomes
        if (outcomes != BulkOutcome.DONE).any():
            raise RuntimeError(f"{requests.where} has not taken all documents: {answer.content[:500]!r}")

    with ThreadPoolExecutor(connections) as pool:
        list(pool.map(send, bodies))
    requests.request_json("POST", "/_refresh")
