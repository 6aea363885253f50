"""A search server and one index on it."""

import json
import secrets
from typing import Any

from penstock.search.delivery import RetryPolicy
from penstock.search.http import HttpIndex
from penstock.search.transport import PooledTransport


class Server:
    """A search server and one index on it, for what the adapter has no word for."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = f"test-{secrets.token_hex(4)}"
        self.transport = PooledTransport(url)

    def ask(self, method: str, path: str = "", body: Any = None) -> Any:
        answer = self.transport.request(method, f"/{self.name}{path}", body and json.dumps(body))
        assert answer.status < 300, answer
        return json.loads(answer.content)

    def open(self, **policy: Any) -> HttpIndex:
        return HttpIndex.open(self.url, self.name, policy=RetryPolicy(**policy))
