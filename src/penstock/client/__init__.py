"""Python clients of a Penstock server."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.client.connection import Connection, connect
    from penstock.client.flight import FlightClient
    from penstock.client.link import Address

__all__ = ["Address", "Connection", "FlightClient", "connect"]

_HOMES = {"Address": "link", "Connection": "connection", "FlightClient": "flight", "connect": "connection"}


def __getattr__(name: str) -> Any:
    """Arrow takes half a second to load, and who asks over HTTP does without."""
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock.client' has no attribute {name!r}")
    return getattr(import_module(f"penstock.client.{_HOMES[name]}"), name)
