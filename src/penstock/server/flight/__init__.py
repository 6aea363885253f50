"""Arrow Flight: `port` listens, `request` parses what is asked for, `stream_format` chooses the Arrow schema, `stream`
sends batches."""

from penstock.server.flight.port import FlightPort

__all__ = ["FlightPort"]
