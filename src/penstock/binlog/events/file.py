"""A log file on disk → blocks."""

from collections.abc import Iterator
from pathlib import Path

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import ENCRYPTED_MAGIC, MAGIC
from penstock.binlog.events.open_file import LogBytes, log_name, open_log
from penstock.binlog.events.reader import BlockReader
from penstock.errors import BinlogError
from penstock.model import Position
from penstock.model.position import ensure_file_number

_BLOCK_BYTES = 8 << 20
_PIECES = 4  # reads that fill a block: by one read it could grow to twice its size, and memory with it
_INNODB_MAGIC = bytes.fromhex("fefe0d01")


class LogFile:
    """Yields the blocks of a log file, whose positions have `name` as their file, or else the name that the server gave
    it. Afterwards `rest` is the number of bytes at the end that are not a whole event, and `end` the position where the
    whole events end: a file that is being written, or was cut off, ends like that.

        for block in LogFile(Path("binlog.000007")):
            ...
    """

    def __init__(
        self,
        path: Path,
        *,
        name: str | None = None,
        verify: bool = True,
        lenient: bool = True,
        block_bytes: int = _BLOCK_BYTES,
    ) -> None:
        self.path = path
        self.rest = 0
        self.end = Position(name or ensure_file_number(log_name(path)), len(MAGIC))
        self._verify, self._lenient, self._block_bytes = verify, lenient, block_bytes

    def __iter__(self) -> Iterator[Block]:
        reader = BlockReader(
            self.end,
            verify=self._verify,
            lenient=self._lenient,
            is_whole_file=True,
            block_bytes=self._block_bytes,
        )
        with open_log(self.path) as file:
            check_magic(_first_bytes(file, len(MAGIC)), str(self.path))
            piece, pending = max(self._block_bytes // _PIECES, 1), 0
            # Room for the rest of the block and one piece more: a block that does not fit would be copied.
            while size := file.readinto(reader.room(max(self._block_bytes - pending, 0) + piece)[:piece].data):
                reader.advance(size)
                pending += size
                for block in reader.blocks(flush=False):
                    pending = 0
                    yield block
        yield from reader.blocks(flush=True)
        self.rest, self.end = reader.rest, reader.position


def _first_bytes(file: LogBytes, size: int) -> bytes:
    data = bytearray()
    part = bytearray(1)
    while len(data) < size and file.readinto(memoryview(part)):
        data += part
    return bytes(data)


def check_magic(magic: bytes, path: str) -> None:
    """Raise an error for a file that does not begin as a binlog does."""
    if magic == _INNODB_MAGIC or path.endswith(".ibb"):
        raise BinlogError(
            f"{path} is a log that MariaDB keeps in InnoDB's pages (binlog_storage_engine=innodb): only the server and"
            " its own mariadb-binlog read such files"
        )
    if magic == ENCRYPTED_MAGIC:
        raise BinlogError(f"{path} is encrypted, and only its server has the key: read it with --host")
    if magic != MAGIC:
        begins = f"it begins with {magic.hex(' ')}" if magic else "it is empty"
        raise BinlogError(f"{path} is no binlog: {begins}, not {MAGIC.hex(' ')}")
