"""`penstock.connect`: a server's changes, in a few lines."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

import pyarrow as pa

from penstock.client.changes import Changes, Subscription
from penstock.client.link import Address, Link
from penstock.model import Position

_PATIENCE_S = 60.0


def connect(
    url: str, *, token: str = "", tls_ca: str = "", destination: str = "default", patience_s: float = _PATIENCE_S
) -> "Connection":
    """`url` is grpc://HOST:PORT, or grpc+tls://HOST:PORT; `tls_ca` a file of certificates to trust.

    A server that goes away is waited for, `patience_s` at most, and so is a destination that it is still starting.
    """
    link = Link(Address(url, token, tls_ca), start_patience_s=patience_s)
    return Connection(link, destination, patience_s)


class Connection:
    def __init__(self, link: Link, destination: str, patience_s: float) -> None:
        self._link, self._destination, self._patience_s = link, destination, patience_s

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._link.close()

    def changes(
        self,
        *tables: str,
        filter: str = "",  # noqa: A002 - as everywhere in the settings
        columns: Sequence[str] = (),
        start: str | Mapping[str, Any] | Position = "latest",
        end: str | Mapping[str, Any] | Position | None = None,
    ) -> Changes:
        """Of one table with its columns; of several, or of all, each row as JSON beside its table.

        `start` and `end` are `latest`, `first` (of the server's store), `earliest` (of the source's log), FILE:OFFSET,
        or what was the `position` of changes before; a start also `gtid:…` or `time:2026-01-31T12:00:00Z`. Without an
        end it goes on for ever.
        """
        request = {"destination": self._destination, "tables": list(tables), "start": _place(start)}
        more = {"filter": filter, "columns": list(columns), "end": None if end is None else _place(end)}
        return Changes(self._link, request | {key: value for key, value in more.items() if value}, self._patience_s)

    def subscribe(
        self,
        client: int,
        filter: str = "",  # noqa: A002
        *tables: str,
        start: str | Mapping[str, Any] | Position | None = None,
    ) -> Subscription:
        """With a cursor on the server: `ack()` moves it. `filter` is canal's, such as `shop\\..*`; with one table its
        columns come, else rows as JSON. A client that the server does not know yet begins at `start`."""
        about: dict[str, Any] = {"destination": self._destination, "client": client}
        more: dict[str, Any] = {"filter": filter} | ({} if start is None else {"start": _place(start)})
        self._link.action("subscribe", about | more)
        return Subscription(self._link, about | {"tables": list(tables)}, self._patience_s)

    def unsubscribe(self, client: int) -> None:
        """Nothing is kept for it, but its cursor."""
        self._link.action("unsubscribe", {"destination": self._destination, "client": client})

    def tables(self) -> dict[str, pa.Schema]:
        """All tables that can be read, and their columns."""
        flights = self._link.flights(self._destination)
        found = [(one.descriptor.path, one.schema) for one in flights]
        return {path[1].decode(): schema for path, schema in found if len(path) > 1}

    def positions(self) -> dict[str, Any]:
        """Where the store begins and ends, and the cursors of its clients."""
        return self._asked("positions")

    def status(self) -> dict[str, Any]:
        return self._asked("status")

    def _asked(self, name: str) -> dict[str, Any]:
        return json.loads(self._link.action(name, {"destination": self._destination})[0])


def _place(given: str | Mapping[str, Any] | Position) -> str | Mapping[str, Any]:
    return given.to_json() if isinstance(given, Position) else given
