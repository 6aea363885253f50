"""Python clients of a Penstock server."""

from penstock.client.connection import Connection, connect
from penstock.client.flight import FlightClient
from penstock.client.link import Address

__all__ = ["Address", "Connection", "FlightClient", "connect"]
