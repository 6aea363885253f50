"""Reads a source's log, over a connection or from its files, as blocks."""

from penstock.source.binlog_source import BinlogSource, LogInventory, LogStream
from penstock.source.connection import connect
from penstock.source.directory import DirectoryStream
from penstock.source.open_source import open_source
from penstock.source.preflight import check_source, current_position, oldest_position
from penstock.source.stream import BinlogStream

__all__ = [
    "BinlogSource",
    "BinlogStream",
    "DirectoryStream",
    "LogInventory",
    "LogStream",
    "check_source",
    "connect",
    "current_position",
    "oldest_position",
    "open_source",
]
