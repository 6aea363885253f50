"""What consumers connect to."""

from penstock.server.flight import FlightServer

__all__ = ["FlightServer"]
