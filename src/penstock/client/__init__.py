"""Python clients of a Penstock server."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.client.address import ServerAddress
    from penstock.client.connection import ServerConnection, connect
    from penstock.client.embedded import EmbeddedSource
    from penstock.client.flight import FlightClient

__all__ = ["EmbeddedSource", "FlightClient", "ServerAddress", "ServerConnection", "connect"]

_HOMES = {
    "ServerAddress": "address",
    "ServerConnection": "connection",
    "EmbeddedSource": "embedded",
    "FlightClient": "flight",
    "connect": "connection",
}


def __getattr__(name: str) -> Any:
    """Load a name when it is asked for: Arrow takes half a second to load, and clients over HTTP do without."""
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock.client' has no attribute {name!r}")
    return getattr(import_module(f"penstock.client.{_HOMES[name]}"), name)
