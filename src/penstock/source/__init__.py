"""The replication client: one connection that follows a source's log and gives blocks."""

from penstock.source.connection import connect
from penstock.source.preflight import check_source, current_position, oldest_position
from penstock.source.query import RowQuery
from penstock.source.stream import BinlogStream

__all__ = ["BinlogStream", "RowQuery", "check_source", "connect", "current_position", "oldest_position"]
