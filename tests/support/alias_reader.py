"""A reader that searches by an alias all the time, and remembers what no reader may see."""

import json
import threading
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

from penstock.search.embedded import EmbeddedIndex

Search = Callable[[list[str]], dict[str, dict[str, Any]]]


def search_folder(alias: Path) -> Search:
    """Return what searches documents by their ids in the folder that an alias leads to."""
    index = EmbeddedIndex.open(alias, read_only=True)

    def search(ids: list[str]) -> dict[str, dict[str, Any]]:
        table = index.read_documents([(name, None) for name in ids])
        texts = map(json.loads, table.column("document").to_pylist())
        return dict(zip(table.column("id").to_pylist(), texts, strict=True))

    return search


def search_server(url: str, alias: str) -> Search:
    """Return what searches documents by their ids on a search server, as readers do: without those that are not
    refreshed."""

    def search(ids: list[str]) -> dict[str, dict[str, Any]]:
        body = json.dumps({"size": len(ids), "query": {"ids": {"values": ids}}}).encode()
        request = urllib.request.Request(  # noqa: S310 - ours
            f"{url}/{alias}/_search", body, {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - ours
            hits = json.load(answer)["hits"]["hits"]
        return {hit["_id"]: hit["_source"] for hit in hits}

    return search


class AliasReader:
    """Searches documents that always exist, and whose field `stock` only rises."""

    def __init__(self, search: Search, ids: Iterable[str]) -> None:
        self._search, self._ids = search, list(ids)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._read, name="alias-reader")
        self._newest: dict[str, int] = {}
        self.searches, self.complaints = 0, list[str]()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._stopping.wait(0.01):
            try:
                self._judge(self._search(self._ids))
            except Exception as error:  # noqa: BLE001 - whatever it is, a reader has met it
                self.complaints.append(repr(error))

    def _judge(self, documents: dict[str, dict[str, Any]]) -> None:
        self.searches += 1
        if missing := [name for name in self._ids if name not in documents]:
            self.complaints.append(f"missing {missing[:5]}")
        for name, document in documents.items():
            if document["stock"] < self._newest.get(name, 0):
                self.complaints.append(f"document {name} went back to {document['stock']}")
            if not document["parts"]:
                self.complaints.append(f"document {name} is half a document")
            self._newest[name] = max(document["stock"], self._newest.get(name, 0))
