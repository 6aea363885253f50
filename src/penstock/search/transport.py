"""HTTP to a search server through urllib3: one pool of connections, foreign errors mapped once.

Invariant: the password is in the Authorization header and nowhere else; `where`, errors and logs show the URL without.
"""

from typing import Any
from urllib.parse import unquote

from penstock.errors import ConfigurationError, MissingExtraError, SinkError, SinkUnavailableError
from penstock.search.delivery import HttpResponse

try:
    import urllib3
    from urllib3.exceptions import HTTPError, LocationParseError, SSLError
    from urllib3.util import Url, parse_url
except ImportError as error:
    raise MissingExtraError.for_extra("search", "writing to Elasticsearch or OpenSearch") from error


class PooledTransport:
    """Sends HTTP requests to one server over a pool of connections. Several threads may use it."""

    def __init__(self, url: str, *, timeout_s: float = 60.0, ca_certs: str | None = None) -> None:
        parts = _parse_url(url)
        self.where = f"{parts.scheme}://{parts.netloc}{(parts.path or '').rstrip('/')}"
        headers = {"accept": "application/json"}
        if parts.auth:
            headers |= urllib3.make_headers(basic_auth=unquote(parts.auth))
        self._pool = urllib3.PoolManager(
            headers=headers,
            maxsize=4,
            # Retrying is the sender's business; a redirect would carry the password elsewhere.
            retries=False,
            timeout=urllib3.Timeout(connect=min(5.0, timeout_s), read=timeout_s),
            cert_reqs="CERT_REQUIRED",
            ca_certs=ca_certs,
        )

    def __repr__(self) -> str:
        return f"Transport({self.where!r})"

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> HttpResponse:
        """Send one request, and return the answer whatever its status."""
        headers: dict[str, str] = dict(self._pool.headers)
        if body is not None:
            headers["content-type"] = content_type
        try:
            answer = self._pool.request(method, f"{self.where}{path}", body=body, headers=headers, redirect=False)
        except SSLError as error:
            raise SinkError(
                f"no trusted connection to {self.where}: {error}. Install the server's certificate authority, or name "
                "its file in the settings"
            ) from error
        except HTTPError as error:
            raise SinkUnavailableError(f"no answer from {self.where}: {error}") from error
        return HttpResponse(answer.status, answer.data)

    def close(self) -> None:
        """Close the idle connections."""
        self._pool.clear()


def _parse_url(url: str) -> Url:
    """Parse the URL of a server; a broken one is a ConfigurationError."""
    # The text of a parse error may hold the password, so it is not chained.
    try:
        parts = parse_url(url)
    except LocationParseError:
        raise ConfigurationError(
            "the URL of the search server cannot be read; write https://user:password@host:9200"
        ) from None
    if parts.scheme not in {"http", "https"} or not parts.host:
        raise ConfigurationError(
            "the URL of the search server has no scheme or host; write https://user:password@host:9200"
        )
    if parts.query or parts.fragment:
        raise ConfigurationError(f"the URL of the search server at {parts.host} ends with a path, not with a query")
    return parts
