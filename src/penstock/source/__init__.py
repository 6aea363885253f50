"""Following a source's log, over one connection or through its files, which gives blocks."""

from penstock.source.connection import connect
from penstock.source.directory import DirectoryStream
from penstock.source.origin import LogStream, Origin, Seen
from penstock.source.origins import origin_of
from penstock.source.preflight import check_source, current_position, oldest_position
from penstock.source.query import RowQuery
from penstock.source.stream import BinlogStream

__all__ = [
    "BinlogStream",
    "DirectoryStream",
    "LogStream",
    "Origin",
    "RowQuery",
    "Seen",
    "check_source",
    "connect",
    "current_position",
    "oldest_position",
    "origin_of",
]
