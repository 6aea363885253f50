"""The port itself: which page is which, and who may see it.

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
from penstock.server.admin.client_calls import change_client, is_about_client, no_instance
from penstock.server.admin.http import HttpRefusedError, HttpRequest, read_request, response
from penstock.server.admin.metrics import CONTENT_TYPE, render
from penstock.server.port import Port
from penstock.server.report import Report

log = logging.getLogger(__name__)

_CONNECTIONS = 64
_REQUEST_S = 5.0
_ANSWER_S = 10.0
_JSON = "application/json"

Page = Callable[[], bytes]


class AdminPort(Port):
    """Binds when constructed. Without a token only this machine may ask, under a name of its own: a page in somebody's
    browser comes with the name that it was fetched from."""

    def __init__(
        self,
        settings: AdminSettings,
        port: int,
        report: Report,
        *,
        instance_of: Callable[[str], Instance] = no_instance,
        connections: int = _CONNECTIONS,
        request_s: float = _REQUEST_S,
    ) -> None:
        super().__init__("admin", settings.host, port, connections=connections)
        self._report, self._instance_of, self._request_s = report, instance_of, request_s
        self._token = None if settings.token is None else settings.token.get_secret_value()
        self._pages: Mapping[str, Page] = {
            "/healthz": lambda: response(HTTPStatus.OK, "ok\n"),
            "/readyz": self._readyz,
            "/status": self._status,
            "/metrics": self._metrics,
        }

    def _talk(self, connection: socket.socket) -> None:
        method, path = "", ""
        try:
            request = read_request(connection, self._request_s)
            if request is None:
                return
            method, path = request.method, request.path
            answer = self._answer(request)
        except HttpRefusedError as error:
            answer = _refused(error)
        except Exception:
            log.exception("admin request failed path=%s", path[:40])
            answer = response(HTTPStatus.INTERNAL_SERVER_ERROR, "an error inside of the server: its log says more\n")
        connection.settimeout(_ANSWER_S)
        connection.sendall(answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if method == "HEAD" else answer)
        # What the peer still sends is read, for a moment: closing over it would take the answer away from it.
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(0.2)
            for _ in range(16):
                if not connection.recv(4096):
                    break

    def _answer(self, request: HttpRequest) -> bytes:
        page = self._pages.get(request.path)
        if request.path != "/healthz":
            self._check_access(request)
        if is_about_client(request):
            return response(HTTPStatus.OK, _json(change_client(request, self._instance_of)), _JSON)
        if page is None:
            raise HttpRefusedError(HTTPStatus.NOT_FOUND, f"there is {', '.join(self._pages)}")
        if request.method not in {"GET", "HEAD"}:
            raise HttpRefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "GET it")
        return page()

    def _check_access(self, request: HttpRequest) -> None:
        if self._token is not None:
            if not request.carries(self._token):
                log.warning("admin request refused path=%s reason=no token, or a wrong one", request.path[:40])
                raise HttpRefusedError(HTTPStatus.UNAUTHORIZED, "say Authorization: Bearer and the token")
        elif "Host" in request.headers and not is_loopback(request.host):
            raise HttpRefusedError(HTTPStatus.FORBIDDEN, "without a token, ask as localhost")

    def _readyz(self) -> bytes:
        found = self._report.readiness()
        status = HTTPStatus.OK if found.is_ready else HTTPStatus.SERVICE_UNAVAILABLE
        return response(status, _json(found.to_json()), _JSON)

    def _status(self) -> bytes:
        return response(HTTPStatus.OK, _json(self._report.status()), _JSON)

    def _metrics(self) -> bytes:
        return response(HTTPStatus.OK, render(self._report.status(), self._report.traffic), CONTENT_TYPE)

    def _refusal(self) -> bytes:
        return response(HTTPStatus.SERVICE_UNAVAILABLE, "there are too many connections: try again later\n")


def _refused(error: HttpRefusedError) -> bytes:
    more = {"WWW_Authenticate": "Bearer"} if error.status is HTTPStatus.UNAUTHORIZED else {}
    more |= {"Retry_After": "1"} if error.status is HTTPStatus.SERVICE_UNAVAILABLE else {}
    more |= {"Allow": error.allow} if error.status is HTTPStatus.METHOD_NOT_ALLOWED else {}
    return response(error.status, f"{error.text}\n", **more)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
