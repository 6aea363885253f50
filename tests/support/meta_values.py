"""Positions and batches for tests of meta."""

from penstock.meta import BatchRange, Cursor
from penstock.model import Position


def at(offset: int, file: int = 7, timestamp: int = 0, epoch: int = 0) -> Position:
    return Position(f"binlog.{file:06}", offset, timestamp, epoch)


def batch(start: int, end: int) -> BatchRange:
    return BatchRange(at(start), at(end), end, Cursor(at(end)))
