"""The requests of the admin port that change a client of an instance.

DELETE /instances/DESTINATION/clients/ID                              forget a client: its subscription and its cursor
PUT    /instances/DESTINATION/clients/ID?position=FILE:OFFSET&epoch=N  let a client resume there
"""

import logging
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from penstock.errors import ConfigurationError, NotRunningError, PenstockError
from penstock.instance import Instance
from penstock.model import Position
from penstock.server.admin.http import HttpRefusedError, HttpRequest

log = logging.getLogger(__name__)

_PATH = re.compile(r"/instances/([^/]+)/clients/(\d{1,5})")
METHODS = ("DELETE", "PUT")


def refuse_destination(destination: str) -> Instance:
    """Raise ConfigurationError for any destination: an admin port without a server has none."""
    raise ConfigurationError(f"there is no destination '{destination}' on this server")


def is_client_request(request: HttpRequest) -> bool:
    """Return whether the path of a request names a client of an instance."""
    return _PATH.fullmatch(request.path) is not None


def change_client(request: HttpRequest, get_instance: Callable[[str], Instance]) -> dict[str, Any]:
    """Forget a client (DELETE) or move its cursor (PUT), and return the answer as JSON data. Raises
    HttpRefusedError."""
    matched = _PATH.fullmatch(request.path)
    if matched is None or request.method not in METHODS:
        raise HttpRefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "DELETE or PUT it", ", ".join(METHODS))
    if "Origin" in request.headers:
        raise HttpRefusedError(HTTPStatus.FORBIDDEN, "a page in a browser changes nothing here")
    destination, client_id = unquote(matched[1]), int(matched[2])
    try:
        instance = get_instance(destination)
        if request.method == "DELETE":
            return _forget_client(instance, destination, client_id)
        return _seek_client(instance, destination, client_id, request)
    except ConfigurationError as error:
        raise HttpRefusedError(HTTPStatus.NOT_FOUND, str(error)) from None
    except NotRunningError as error:
        raise HttpRefusedError(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from None
    except PenstockError as error:
        raise HttpRefusedError(HTTPStatus.CONFLICT, str(error)) from None


def _forget_client(instance: Instance, destination: str, client_id: int) -> dict[str, Any]:
    """Remove a client with its cursor."""
    clients = instance.clients
    if not clients.is_known(client_id):
        known = ", ".join(map(str, clients.subscriptions())) or "none"
        raise ConfigurationError(f"there is no client {client_id} of '{destination}'; there is {known}")
    clients.forget(client_id)
    log.warning("client and its cursor deleted destination=%s client=%d by=admin", destination, client_id)
    return {"destination": destination, "client": client_id, "forgotten": True}


def _seek_client(instance: Instance, destination: str, client_id: int, request: HttpRequest) -> dict[str, Any]:
    """Move a client's cursor to the position in the query, which must be a transaction boundary."""
    epoch = request.query_parameter("epoch") or "0"
    try:
        requested = Position.parse(request.query_parameter("position"), int(epoch))
    except (PenstockError, ValueError):
        raise HttpRefusedError(HTTPStatus.BAD_REQUEST, "say ?position=FILE:OFFSET, and &epoch=N of that log") from None
    position = instance.source_log.resolver.align(requested)
    if position != requested:
        text = f"{requested} is no transaction boundary: the last one before it is {position}"
        raise HttpRefusedError(HTTPStatus.CONFLICT, text)
    instance.clients.seek(client_id, position)
    log.warning("client cursor set destination=%s client=%d position=%s by=admin", destination, client_id, position)
    return {"destination": destination, "client": client_id, "position": position.to_json()}
