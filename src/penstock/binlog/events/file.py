"""A log file on disk → blocks."""

from collections.abc import Iterator
from pathlib import Path

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import MAGIC
from penstock.binlog.events.reader import BlockReader
from penstock.errors import BinlogError
from penstock.model import Position

_PIECE_BYTES = 1 << 20


class LogFile:
    """Iterate for its blocks. Afterwards `rest` says how many bytes at the end are no whole event: a file that is
    being written, or was cut off, ends like that."""

    def __init__(self, path: Path, *, verify: bool = True) -> None:
        self.path = path
        self.rest = 0
        self._verify = verify

    def __iter__(self) -> Iterator[Block]:
        reader = BlockReader(Position(self.path.name, len(MAGIC)), verify=self._verify)
        with self.path.open("rb") as file:
            magic = file.read(len(MAGIC))
            if magic != MAGIC:
                raise BinlogError(
                    f"{self.path} is no binlog: it begins with {magic.hex(' ') or 'nothing'}, not {MAGIC.hex(' ')}"
                )
            while True:
                size = file.readinto(reader.room(_PIECE_BYTES)[:_PIECE_BYTES].data)
                if not size:
                    break
                reader.filled(size)
                yield from reader.blocks(flush=False)
        yield from reader.blocks(flush=True)
        self.rest = reader.rest
