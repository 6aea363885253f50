"""What can be changed at the admin port: the clients of an instance.

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


def no_instance(destination: str) -> Instance:
    """As a port without a server has it."""
    raise ConfigurationError(f"there is no destination '{destination}' on this server")


def is_about_client(request: HttpRequest) -> bool:
    return _PATH.fullmatch(request.path) is not None


def change_client(request: HttpRequest, instance_of: Callable[[str], Instance]) -> dict[str, Any]:
    """Do what a request asks for, and return what to answer. Raises HttpRefusedError."""
    matched = _PATH.fullmatch(request.path)
    if matched is None or request.method not in METHODS:
        raise HttpRefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "DELETE or PUT it", ", ".join(METHODS))
    if "Origin" in request.headers:
        raise HttpRefusedError(HTTPStatus.FORBIDDEN, "a page in a browser changes nothing here")
    destination, client_id = unquote(matched[1]), int(matched[2])
    try:
        instance = instance_of(destination)
        if request.method == "DELETE":
            return _forget(instance, destination, client_id)
        return _seek(instance, destination, client_id, request)
    except ConfigurationError as error:
        raise HttpRefusedError(HTTPStatus.NOT_FOUND, str(error)) from None
    except NotRunningError as error:
        raise HttpRefusedError(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from None
    except PenstockError as error:
        raise HttpRefusedError(HTTPStatus.CONFLICT, str(error)) from None


def _forget(instance: Instance, destination: str, client_id: int) -> dict[str, Any]:
    clients = instance.clients
    if not clients.is_known(client_id):
        known = ", ".join(map(str, clients.subscriptions())) or "none"
        raise ConfigurationError(f"there is no client {client_id} of '{destination}'; there is {known}")
    clients.forget(client_id)
    log.warning("client and its cursor deleted destination=%s client=%d by=the admin port", destination, client_id)
    return {"destination": destination, "client": client_id, "forgotten": True}


def _seek(instance: Instance, destination: str, client_id: int, request: HttpRequest) -> dict[str, Any]:
    epoch = request.parameter("epoch") or "0"
    try:
        wanted = Position.parse(request.parameter("position"), int(epoch))
    except (PenstockError, ValueError):
        raise HttpRefusedError(HTTPStatus.BAD_REQUEST, "say ?position=FILE:OFFSET, and &epoch=N of that log") from None
    found = instance.source_log.resolver.align(wanted)
    if found != wanted:
        text = f"{wanted} is no place between two transactions: the last one before it is {found}"
        raise HttpRefusedError(HTTPStatus.CONFLICT, text)
    instance.clients.seek(client_id, found)
    log.warning(
        "client cursor set destination=%s client=%d position=%s by=the admin port", destination, client_id, found
    )
    return {"destination": destination, "client": client_id, "position": found.to_json()}
