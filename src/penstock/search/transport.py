"""HTTP to the nodes of a search server through urllib3: one pool of connections, foreign errors mapped once.

Invariant: passwords and API keys are in the Authorization header and nowhere else; `where`, errors and logs show URLs
without them.

A request that does not reach a node, or is answered 502, 503 or 504 by it or by a proxy before it, is sent to the next
node. Later requests begin at the node that answered last; a node that failed is left out for some time, unless no other
is left.
"""

import base64
import logging
import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from penstock.backoff import Backoff
from penstock.errors import ConfigurationError, MissingExtraError, SinkError, SinkUnavailableError
from penstock.search.delivery import HttpResponse

try:
    import urllib3
    from urllib3.exceptions import ConnectTimeoutError, HTTPError, LocationParseError, NewConnectionError, SSLError
    from urllib3.util import Url, parse_url
except ImportError as error:
    raise MissingExtraError.for_extra("search", "writing to Elasticsearch or OpenSearch") from error

log = logging.getLogger(__name__)

_ELSEWHERE = frozenset({502, 503, 504})
_UNSENT = (NewConnectionError, ConnectTimeoutError)  # nothing has reached the node
_FIRST_DELAY_S, _LONGEST_DELAY_S = 1.0, 30.0
_EXAMPLE = "write https://user:password@host:9200, several nodes divided by commas"


class _Node:
    """One node: its URL without secrets, its headers, and until when it is left out."""

    def __init__(self, url: str, api_key: str | None) -> None:
        parts = _parse_url(url)
        self.where = f"{parts.scheme}://{parts.netloc}{(parts.path or '').rstrip('/')}"
        self.headers = {"accept": "application/json"}
        if api_key and parts.auth:
            raise ConfigurationError(f"{self.where} has a user and an API key; give one of the two")
        if parts.auth:
            self.headers |= urllib3.make_headers(basic_auth=unquote(parts.auth))
        elif api_key:
            self.headers["authorization"] = f"ApiKey {_encode_api_key(api_key)}"
        self.failures = 0
        self.left_out_until = 0.0


class PooledTransport:
    """Sends HTTP requests to the nodes of one search server over a pool of connections. Several threads may use it.

    transport = PooledTransport("https://search1:9200,https://search2:9200", api_key="id:key")
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = 60.0,
        ca_certs: str | None = None,
        api_key: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # A password may hold a comma.
        self._nodes = [_Node(part.strip(), api_key) for part in re.split(r",(?=\s*https?://)", url)]
        self.where = ", ".join(node.where for node in self._nodes)
        self._current = 0
        self._clock = clock
        self._backoff = Backoff(_FIRST_DELAY_S, _LONGEST_DELAY_S)
        self._pool = urllib3.PoolManager(
            num_pools=max(10, len(self._nodes)),
            maxsize=4,
            # Retrying is the sender's business; a redirect would carry the password elsewhere.
            retries=False,
            timeout=urllib3.Timeout(connect=min(5.0, timeout_s), read=timeout_s),
            cert_reqs="CERT_REQUIRED",
            ca_certs=ca_certs,
        )

    def __repr__(self) -> str:
        return f"Transport({self.where!r})"

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        *,
        is_repeatable: bool = True,
    ) -> HttpResponse:
        """Send one request, and return the answer whatever its status. Unless `is_repeatable`, a request that may have
        reached a node is not sent to another.
        """
        outcome: HttpResponse | SinkUnavailableError = SinkUnavailableError(f"no answer from {self.where}")
        for number in self._choose_nodes():
            node = self._nodes[number]
            outcome = self._send(node, method, path, body, content_type)
            if isinstance(outcome, HttpResponse) and outcome.status not in _ELSEWHERE:
                node.failures, self._current = 0, number
                return outcome
            self._leave_out(node)
            is_unsent = not isinstance(outcome, HttpResponse) and isinstance(outcome.__cause__, _UNSENT)
            if not is_unsent and not (is_repeatable and isinstance(outcome, HttpResponse)):
                break
        if isinstance(outcome, SinkUnavailableError):
            raise outcome
        return outcome

    def close(self) -> None:
        """Close the idle connections."""
        self._pool.clear()

    def _choose_nodes(self) -> list[int]:
        """Return the indexes of the nodes in the order in which to try them: the node that answered last, then the
        others in turn. A node that has failed, and whose delay is not over, comes after all that may be used now."""
        now = self._clock()
        ring = [(self._current + step) % len(self._nodes) for step in range(len(self._nodes))]
        return sorted(ring, key=lambda number: max(0.0, self._nodes[number].left_out_until - now))

    def _leave_out(self, node: _Node) -> None:
        """Leave a node out for a time that doubles with each failure."""
        node.failures += 1
        delay_s = self._backoff.delay_s(node.failures)
        node.left_out_until = self._clock() + delay_s
        if len(self._nodes) > 1:
            log.warning(
                "search node failed, not used until its next try node=%s failures=%d delay_s=%.1f",
                *(node.where, node.failures, delay_s),
            )

    def _send(
        self, node: _Node, method: str, path: str, body: Any, content_type: str
    ) -> HttpResponse | SinkUnavailableError:
        """Send one request to one node, and return its answer, or the error if there is none."""
        headers = node.headers if body is None else {**node.headers, "content-type": content_type}
        try:
            answer = self._pool.request(method, f"{node.where}{path}", body=body, headers=headers, redirect=False)
        except SSLError as error:
            raise SinkError(
                f"no trusted connection to {node.where}: {error}. Install the server's certificate authority, or name "
                "its file in the settings"
            ) from error
        except HTTPError as error:
            failure = SinkUnavailableError(f"no answer from {node.where}: {error}")
            failure.__cause__ = error
            return failure
        return HttpResponse(answer.status, answer.data)


def _encode_api_key(api_key: str) -> str:
    """Return an API key as the header has it; `id:key` is encoded first."""
    if not api_key.isascii() or any(map(str.isspace, api_key)):
        raise ConfigurationError("the API key of the search server has a character that no key has")
    return base64.b64encode(api_key.encode()).decode() if ":" in api_key else api_key


def _parse_url(url: str) -> Url:
    """Parse the URL of a node; a broken one is a ConfigurationError."""
    # The text of a parse error may hold the password, so it is not chained.
    try:
        parts = parse_url(url)
    except LocationParseError:
        raise ConfigurationError(f"the URL of the search server cannot be read; {_EXAMPLE}") from None
    if parts.scheme not in {"http", "https"} or not parts.host:
        raise ConfigurationError(f"the URL of the search server has no scheme or host; {_EXAMPLE}")
    if parts.query or parts.fragment:
        raise ConfigurationError(f"the URL of the search server at {parts.host} ends with a path, not with a query")
    return parts
