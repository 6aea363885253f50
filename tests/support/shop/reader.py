"""All documents of a search server's index, by its own API, with every digit of their numbers."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from typing import Any
from urllib.parse import quote, urlsplit

_PAGE = 1000


def read_documents(url: str, index: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every document that a search finds, from every shard, decimals with all digits; the index is refreshed
    first."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
    with closing(connection):
        _ask(connection, f"/{quote(index)}/_refresh", {})
        page = _ask(connection, f"/{quote(index)}/_search?scroll=1m", {"size": _PAGE, "sort": ["_doc"]})
        scroll = page["_scroll_id"]
        while page["hits"]["hits"]:
            for hit in page["hits"]["hits"]:
                yield hit["_id"], hit["_source"]
            page = _ask(connection, "/_search/scroll", {"scroll": "1m", "scroll_id": scroll})
            scroll = page["_scroll_id"]
        # A server has a limited number of scrolls, and a poll reads the index again and again.
        _ask(connection, "/_search/scroll", {"scroll_id": scroll}, "DELETE")


def _ask(
    connection: http.client.HTTPConnection, path: str, body: dict[str, Any], method: str = "POST"
) -> dict[str, Any]:
    """Send a request and return the answer."""
    connection.request(method, path, json.dumps(body) if body else "", {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read().decode()
    if answer.status != http.client.OK:
        raise RuntimeError(f"{path}: {answer.status} {text[:300]}")
    return json.loads(text, parse_float=Decimal)
