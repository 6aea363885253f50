"""Python clients of a Penstock server."""

from penstock.client.flight import FlightClient

__all__ = ["FlightClient"]
