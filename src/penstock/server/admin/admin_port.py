"""The admin port: its pages, and who may see them.

/healthz   200 while the process answers; open to all who reach the port
/readyz    200, or 503 with reasons: JSON
/status    JSON
/metrics   Prometheus' text
/instances/DESTINATION/clients/ID   DELETE and PUT change a client, see `client_calls`
"""

import contextlib
import json
import logging
import socket
from collections.abc import Callable, Mapping
from http import HTTPStatus

from penstock.config import AdminSettings
from penstock.config.listener_settings import is_loopback
from penstock.instance import Instance
from penstock.server.admin.client_calls import change_client, is_client_request, refuse_destination
from penstock.server.admin.http import HttpRefusedError, HttpRequest, make_response, read_request
from penstock.server.admin.metrics import CONTENT_TYPE, render_metrics
from penstock.server.port import Port
from penstock.server.report import ServerReport

log = logging.getLogger(__name__)

_CONNECTIONS = 64
_REQUEST_S = 5.0
_ANSWER_S = 10.0
_JSON = "application/json"

Page = Callable[[], bytes]


class AdminPort(Port):
    """The HTTP port for operators. It binds when constructed. Without a token only this machine may ask, and only with
    a loopback name in the Host header, so that a page in a browser cannot reach it by DNS rebinding."""

    def __init__(
        self,
        settings: AdminSettings,
        port: int,
        report: ServerReport,
        *,
        get_instance: Callable[[str], Instance] = refuse_destination,
        connections: int = _CONNECTIONS,
        request_s: float = _REQUEST_S,
    ) -> None:
        super().__init__("admin", settings.host, port, connections=connections)
        self._report, self._get_instance, self._request_s = report, get_instance, request_s
        self._token = None if settings.token is None else settings.token.get_secret_value()
        self._pages: Mapping[str, Page] = {
            "/healthz": lambda: make_response(HTTPStatus.OK, "ok\n"),
            "/readyz": self._readiness_page,
            "/status": self._status_page,
            "/metrics": self._metrics_page,
        }

    def _handle_connection(self, connection: socket.socket) -> None:
        """Answer the one request of an HTTP connection."""
        method, path = "", ""
        try:
            request = read_request(connection, self._request_s)
            if request is None:
                return
            method, path = request.method, request.path
            answer = self._handle_request(request)
        except HttpRefusedError as error:
            answer = _make_refusal(error)
        except Exception:
            log.exception("admin request failed path=%s", path[:40])
            answer = make_response(
                HTTPStatus.INTERNAL_SERVER_ERROR, "an error inside of the server: its log says more\n"
            )
        connection.settimeout(_ANSWER_S)
        connection.sendall(answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if method == "HEAD" else answer)
        # What the peer still sends is read, for a moment: closing over it would take the answer away from it.
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(0.2)
            for _ in range(16):
                if not connection.recv(4096):
                    break

    def _handle_request(self, request: HttpRequest) -> bytes:
        """Return the page that a request asks for, or change a client. Raises HttpRefusedError."""
        page = self._pages.get(request.path)
        if request.path != "/healthz":
            self._check_access(request)
        if is_client_request(request):
            return make_response(HTTPStatus.OK, _json(change_client(request, self._get_instance)), _JSON)
        if page is None:
            raise HttpRefusedError(HTTPStatus.NOT_FOUND, f"there is {', '.join(self._pages)}")
        if request.method not in {"GET", "HEAD"}:
            raise HttpRefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "GET it")
        return page()

    def _check_access(self, request: HttpRequest) -> None:
        """Raise HttpRefusedError for a request without the token, or without a token for one that does not come as
        localhost."""
        if self._token is not None:
            if not request.has_bearer_token(self._token):
                log.warning("admin request refused path=%s reason=no token, or a wrong one", request.path[:40])
                raise HttpRefusedError(HTTPStatus.UNAUTHORIZED, "say Authorization: Bearer and the token")
        elif "Host" in request.headers and not is_loopback(request.host):
            raise HttpRefusedError(HTTPStatus.FORBIDDEN, "without a token, ask as localhost")

    def _readiness_page(self) -> bytes:
        """Return `/readyz`: 200 or 503, with the reasons as JSON."""
        readiness = self._report.readiness()
        status = HTTPStatus.OK if readiness.is_ready else HTTPStatus.SERVICE_UNAVAILABLE
        return make_response(status, _json(readiness.to_json()), _JSON)

    def _status_page(self) -> bytes:
        """Return `/status` as JSON."""
        return make_response(HTTPStatus.OK, _json(self._report.status()), _JSON)

    def _metrics_page(self) -> bytes:
        """Return `/metrics` in Prometheus' text format."""
        return make_response(HTTPStatus.OK, render_metrics(self._report.status(), self._report.traffic), CONTENT_TYPE)

    def _limit_reply(self) -> bytes:
        """Return the answer to a connection beyond the limit."""
        return make_response(HTTPStatus.SERVICE_UNAVAILABLE, "there are too many connections: try again later\n")


def _make_refusal(error: HttpRefusedError) -> bytes:
    """Return the HTTP response for a refused request."""
    headers = {"WWW_Authenticate": "Bearer"} if error.status is HTTPStatus.UNAUTHORIZED else {}
    headers |= {"Retry_After": "1"} if error.status is HTTPStatus.SERVICE_UNAVAILABLE else {}
    headers |= {"Allow": error.allow} if error.status is HTTPStatus.METHOD_NOT_ALLOWED else {}
    return make_response(error.status, f"{error.text}\n", **headers)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
