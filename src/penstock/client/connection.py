"""`penstock.connect`: a server's changes, in a few lines."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

import pyarrow as pa

from penstock.client.address import ServerAddress
from penstock.client.changes import ChangeStream, ClientSubscription
from penstock.client.link import ServerLink
from penstock.model import Position

_RETRY_TIMEOUT_S = 60.0


def connect(
    url: str,
    *,
    token: str = "",
    tls_ca: str = "",
    destination: str = "default",
    retry_timeout_s: float = _RETRY_TIMEOUT_S,
) -> "ServerConnection":
    """Return a connection to the server that runs a destination, which is the name of an instance (a capture pipeline),
    not a sink.

        with penstock.connect("zookeeper://zk1:2181,zk2:2181", destination="shop") as server: ...

    `url` is grpc://HOST:PORT, grpc+tls://HOST:PORT, several servers as grpc://HOST:PORT,HOST:PORT, or
    zookeeper://HOST:PORT,HOST:PORT; `tls_ca` is a file of certificates to trust.

    A server that does not listen yet or goes away is waited for, `retry_timeout_s` at most, and so is a destination
    that it is still starting. With a `retry_timeout_s` of 0 the first failure is raised.
    """
    link = ServerLink(ServerAddress(url, token, tls_ca), start_timeout_s=retry_timeout_s, destination=destination)
    return ServerConnection(link, destination, retry_timeout_s)


class ServerConnection:
    """A connection to one destination, as `penstock.connect` returns it.

    with penstock.connect("grpc://cdc1:11115", destination="shop") as connection:
        rows = next(connection.changes("shop.product"))
    """

    def __init__(self, link: ServerLink, destination: str, retry_timeout_s: float) -> None:
        self._link, self._destination, self._retry_timeout_s = link, destination, retry_timeout_s

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._link.close()

    def changes(
        self,
        *tables: str,
        filter: str = "",  # noqa: A002 - as everywhere in the settings
        columns: Sequence[str] = (),
        start: str | Mapping[str, Any] | Position = "latest",
        end: str | Mapping[str, Any] | Position | None = None,
    ) -> ChangeStream:
        """Return a stream of changes: of one table with its columns; of several, or of all, each row as JSON beside its
        table.

        `start` and `end` are `latest`, `stored` (what the server's store still has), `earliest` (where the source's log
        begins), FILE:OFFSET, `gtid:…`, `time:2026-01-31T12:00:00Z`, `time:-10m`, or the `position` of earlier changes;
        docs/positions.md has them all. Without an end the stream never ends.
        """
        request = {"destination": self._destination, "tables": list(tables), "start": _position_to_request(start)}
        options = {
            "filter": filter,
            "columns": list(columns),
            "end": None if end is None else _position_to_request(end),
        }
        return ChangeStream(
            self._link, request | {key: value for key, value in options.items() if value}, self._retry_timeout_s
        )

    def subscribe(
        self,
        client: int,
        *,
        tables: Sequence[str] = (),
        filter: str = "",  # noqa: A002
        start: str | Mapping[str, Any] | Position | None = None,
    ) -> ClientSubscription:
        """Open a stream with a cursor on the server, which `ack()` moves.

            with there.subscribe(7, tables=["shop.product"]) as changes: ...

        `filter` is canal's, such as `shop\\..*`. With one table the batches have its columns, else rows as JSON. A
        client that the server does not know yet begins at `start`.
        """
        request: dict[str, Any] = {"destination": self._destination, "client": client}
        options: dict[str, Any] = {"filter": filter} | ({} if start is None else {"start": _position_to_request(start)})
        self._link.call_action("subscribe", request | options)
        return ClientSubscription(self._link, request | {"tables": list(tables)}, self._retry_timeout_s)

    def unsubscribe(self, client: int) -> None:
        """Remove a client: the server stores nothing for it except its cursor."""
        self._link.call_action("unsubscribe", {"destination": self._destination, "client": client})

    def tables(self) -> dict[str, pa.Schema]:
        """Return all tables that can be read, and their columns."""
        flights = self._link.list_flights(self._destination)
        schemas = [(flight.descriptor.path, flight.schema) for flight in flights]
        return {path[1].decode(): schema for path, schema in schemas if len(path) > 1}

    def positions(self) -> dict[str, Any]:
        """Return where the store begins and ends, and the cursors of its clients."""
        return self._ask("positions")

    def status(self) -> dict[str, Any]:
        """Return the status of the destination."""
        return self._ask("status")

    def _ask(self, name: str) -> dict[str, Any]:
        """Call an action, and return its answer."""
        return json.loads(self._link.call_action(name, {"destination": self._destination})[0])


def _position_to_request(position: str | Mapping[str, Any] | Position) -> str | Mapping[str, Any]:
    """Return a start or end position as a value of the JSON request to the server: a text as it is, a Position as
    JSON."""
    return position.to_json() if isinstance(position, Position) else position
