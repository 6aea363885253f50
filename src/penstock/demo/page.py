"""The demo's page: a search box over the index, a form that changes the database, and the milliseconds between."""

import socket
from contextlib import closing
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from penstock.demo.pipeline import DemoPipeline
from penstock.demo.shop import STATES
from penstock.errors import ConfigurationError, MissingExtraError
from penstock.source import connect

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import FileResponse, JSONResponse
    from starlette.routing import Route
except ImportError as error:
    raise MissingExtraError.for_extra("console", "the demo's page") from error

_HTML = Path(__file__).with_name("page.html")
_HITS = 20
_DEADLINE_S = 30.0


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
    shop = _ShopQueries(pipeline)

    async def page(_: Request) -> FileResponse:
        return FileResponse(_HTML, media_type="text/html")

    async def search(request: Request) -> JSONResponse:
        return JSONResponse(await run_in_threadpool(shop.search, request.query_params.get("q", "")))

    async def product(request: Request) -> JSONResponse:
        row = await run_in_threadpool(shop.load_product, request.path_params["id"])
        return JSONResponse(row) if row else _error_response(f"there is no product {request.path_params['id']}", 404)

    async def change(request: Request) -> JSONResponse:
        # A page of another site can post forms here, but not JSON.
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return _error_response("send JSON", 415)
        try:
            wanted = _check_form(await request.json())
        except ValueError as error:
            return _error_response(str(error), 400)
        answer = await run_in_threadpool(shop.change_product, request.path_params["id"], wanted)
        return (
            JSONResponse(answer) if answer else _error_response(f"there is no product {request.path_params['id']}", 404)
        )

    return Starlette(
        routes=[
            Route("/", page),
            Route("/api/search", search),
            Route("/api/product/{id:int}", product),
            Route("/api/product/{id:int}", change, methods=["POST"]),
        ]
    )


def _error_response(message: str, status: int) -> JSONResponse:
    """Return a JSON response with an error."""
    return JSONResponse({"error": message}, status)


def _check_form(body: Any) -> dict[str, Any]:
    """Return what a form sent, or raise a ValueError with the sentence to show."""
    if not isinstance(body, dict):
        raise ValueError("send an object with name, price and state")  # noqa: TRY004 - shown as a bad request
    given: dict[str, Any] = body  # pyright: ignore[reportUnknownVariableType]
    name = str(given.get("name", "")).strip()
    if not 1 <= len(name) <= 120:
        raise ValueError("a name has 1 to 120 characters")
    try:
        price = Decimal(str(given.get("price", ""))).quantize(Decimal("0.01"))
    except InvalidOperation:
        raise ValueError("a price is a number such as 12.50") from None
    if not price.is_finite() or not 0 <= price < 100_000_000:
        raise ValueError("a price lies between 0 and 99999999.99")
    state = given.get("state")
    if state not in STATES:
        raise ValueError(f"a state is one of {', '.join(STATES)}")
    return {"name": name, "price": price, "state": state}


class _ShopQueries:
    """The searches, reads and changes that the page asks for."""

    def __init__(self, pipeline: DemoPipeline) -> None:
        self._pipeline = pipeline

    def search(self, text: str) -> dict[str, Any]:
        """Search the index."""
        index = self._pipeline.index
        hits = [{"id": hit.id, **hit.document} for hit in index.search(text, _HITS)]
        return {"documents": index.count(), "hits": hits}

    def load_product(self, key: int) -> dict[str, Any] | None:
        """Return a product from the database, not from the index."""
        with closing(connect(self._pipeline.source)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT name, price, state FROM shop.product WHERE id = %s", (key,))
            row = cursor.fetchone()
        return {"id": key, "name": row[0], "price": str(row[1]), "state": row[2]} if row else None

    def change_product(self, key: int, wanted: dict[str, Any]) -> dict[str, Any] | None:
        """Commit a change, wait until a search shows it, and return the milliseconds between."""
        with closing(connect(self._pipeline.source)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM shop.product WHERE id = %s", (key,))
            if not cursor.fetchone():
                return None
            changed = cursor.execute(
                "UPDATE shop.product SET name = %(name)s, price = %(price)s, state = %(state)s WHERE id = %(key)s",
                {**wanted, "key": key},
            )
            took_ms = self._pipeline.wait_until(lambda: self._is_searchable(key, wanted), _DEADLINE_S)
        return {"ms": took_ms, "changed": bool(changed), "searchable": wanted["state"] != "hidden"}

    def _is_searchable(self, key: int, wanted: dict[str, Any]) -> bool:
        """Tell whether a search shows these values."""
        document = self._pipeline.index.get(str(key))
        if wanted["state"] == "hidden":
            return document is None
        return document is not None and (
            document["name"] == wanted["name"]
            and Decimal(str(document["price"])) == wanted["price"]
            and document["state"] == wanted["state"]
        )
