"""Arrow Flight: `port` listens, `request` says what is asked for, `shape` what it looks like, `stream` gives it."""

from penstock.server.flight.port import FlightPort

__all__ = ["FlightPort"]
