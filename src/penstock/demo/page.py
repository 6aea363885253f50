"""The demo's page: a search box over the index, an order that can be changed in the database, the milliseconds between,
and a picture of the pipeline with its numbers."""

import socket
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from penstock.demo.change_request import read_change
from penstock.demo.pipeline import DemoPipeline
from penstock.demo.queries import ShopQueries
from penstock.demo.shop import SPEC_FILE
from penstock.errors import ConfigurationError, MissingExtraError, PenstockError

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import FileResponse, JSONResponse, Response
    from starlette.routing import Route
except ImportError as error:
    raise MissingExtraError.for_extra("console", "the demo's page") from error

_FOLDER = Path(__file__).with_name("web")
_FILES = {
    "/": (_FOLDER / "page.html", "text/html"),
    "/page.css": (_FOLDER / "page.css", "text/css"),
    **{
        f"/{name}": (_FOLDER / name, "text/javascript")
        for name in ("page.js", "order.js", "picture.js", "proof.js", "dom.js")
    },
    "/orders.yml": (SPEC_FILE, "text/plain"),
}
# Names come from visitors: nothing but the scripts above runs, whatever a name looks like.
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


def open_listener(port: int) -> socket.socket:
    """Bind the port before anything is started, so that a busy port costs no time."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"the page cannot use port {port} ({error.strerror}): choose another, for example make demo PORT={port + 1}"
        ) from None
    return listener


def serve_page(pipeline: DemoPipeline, listener: socket.socket) -> None:
    """Serve the page until Ctrl-C."""
    config = uvicorn.Config(
        build_application(pipeline), log_level="warning", lifespan="off", timeout_graceful_shutdown=2
    )
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        return


def build_application(pipeline: DemoPipeline) -> Starlette:
    """Return the web application of the page."""
    queries = ShopQueries(pipeline)

    async def search(request: Request) -> Response:
        return await _answer(lambda: queries.search(request.query_params.get("q", "")))

    async def pipeline_numbers(_: Request) -> Response:
        return await _answer(queries.read_numbers)

    async def choices(_: Request) -> Response:
        return await _answer(queries.list_choices)

    async def order(request: Request) -> Response:
        key: int = request.path_params["id"]
        return await _answer(lambda: queries.load_order(key), missing=f"there is no order {key} any more")

    async def change(request: Request) -> Response:
        if not _is_json(request):
            return _error_response("send JSON", 415)
        try:
            wanted = read_change(await request.json())
        except ValueError as error:
            return _error_response(str(error), 400)
        return await _answer(lambda: asdict(pipeline.make_change(wanted)))

    return Starlette(
        routes=[
            *(Route(path, _file_endpoint(file, kind)) for path, (file, kind) in _FILES.items()),
            Route("/api/search", search),
            Route("/api/pipeline", pipeline_numbers),
            Route("/api/choices", choices),
            Route("/api/order/{id:int}", order),
            Route("/api/change", change, methods=["POST"]),
            *_proof_routes(pipeline),
        ]
    )


def _proof_routes(pipeline: DemoPipeline) -> list[Route]:
    """Return what compares the index with the database, and damages it."""

    async def verify(request: Request) -> Response:
        if not _is_json(request):
            return _error_response("send JSON", 415)
        repair = (await request.json()).get("repair") is True
        return await _answer(lambda: pipeline.proof.verify(repair=repair))

    async def damage(request: Request) -> Response:
        return await _answer(pipeline.proof.damage) if _is_json(request) else _error_response("send JSON", 415)

    return [Route("/api/verify", verify, methods=["POST"]), Route("/api/damage", damage, methods=["POST"])]


def _is_json(request: Request) -> bool:
    """Return whether a request has JSON: a page of another site can post forms here, but not JSON."""
    return request.headers.get("content-type", "").partition(";")[0] == "application/json"


def _file_endpoint(file: Path, kind: str) -> Callable[[Request], Awaitable[Response]]:
    """Return what serves a file of the page."""

    async def endpoint(_: Request) -> Response:
        return FileResponse(file, media_type=kind, headers=_HEADERS)

    return endpoint


async def _answer(ask: Callable[[], Any], missing: str = "") -> Response:
    """Return as JSON what a function that may block returns, or what went wrong; None is an answer that is missing."""
    try:
        answer = await run_in_threadpool(ask)
    except LookupError as error:
        return _error_response(str(error), 404)
    except PenstockError as error:
        return _error_response(str(error), 503)
    return _error_response(missing, 404) if answer is None else JSONResponse(answer)


def _error_response(message: str, status: int) -> JSONResponse:
    """Return a JSON response with an error."""
    return JSONResponse({"error": message}, status)
