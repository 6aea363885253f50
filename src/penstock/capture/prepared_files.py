"""Prepared XA transactions in files, so that they outlive the process and a log that is purged.

`prepared.json` says which there are, and up to which position of the log that is all. The events of each that was saved
are in a file of its own, as frames, one for each block:

    magic 4 | CRC32 of what follows the head 4 | length of the description 4 | of the index 8 | of the events 8
    | description | index | events
"""

import json
import logging
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from penstock.binlog.events.block import Block
from penstock.binlog.events.event_columns import EventColumns
from penstock.binlog.xa.transaction import PreparedTransaction
from penstock.disk import replace_file
from penstock.errors import StoreError
from penstock.model import Position

log = logging.getLogger(__name__)

_HEAD = struct.Struct("<4sIIQQ")
_MAGIC = b"pxa1"
_POSITIONS = ("begin", "first", "end")


class PreparedFiles:
    """The folder in which an instance saves prepared XA transactions. A disk that cannot be written is reported once
    and does not stop capture: what is not saved is read again from the log."""

    def __init__(self, folder: Path, *, sync: bool = False, destination: str = "") -> None:
        """With `sync`, what is saved is on the disk when the call returns."""
        self._folder, self._sync, self._destination = folder, sync, destination
        self._saved: set[str] = set()
        self._problem = ""

    @property
    def _list_path(self) -> Path:
        """Return the path of the list of prepared XA transactions."""
        return self._folder / "prepared.json"

    def load(self) -> tuple[Position | None, list[PreparedTransaction]]:
        """Return up to which position of the log the prepared XA transactions are known, and these transactions. Files
        of others are removed."""
        through, transactions = self._load_list()
        names = {path.name for path in self._folder.glob("*.xa")}
        self._saved = {
            name for name in map(_file_name, (transaction.begin for transaction in transactions)) if name in names
        }
        for name in names - self._saved:
            (self._folder / name).unlink(missing_ok=True)
        return through, transactions

    def _load_list(self) -> tuple[Position | None, list[PreparedTransaction]]:
        """Read the list of prepared XA transactions; none when the file is missing or damaged."""
        try:
            content = json.loads(self._list_path.read_bytes())
            transactions = [_transaction_from_json(value) for value in content["transactions"]]
            return (Position.from_json(content["through"]) if content["through"] else None), transactions
        except FileNotFoundError:
            return None, []
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning(
                "prepared XA transactions not loaded destination=%s file=%s reason=%r: the binlog is searched for them",
                *(self._destination, self._list_path, error),
            )
            return None, []

    def write_list(self, through: Position | None, transactions: Iterable[PreparedTransaction]) -> bool:
        """Replace the list of prepared XA transactions, known up to the position `through`; return whether it was
        written."""
        content = {
            "through": through.to_json() if through is not None else None,
            "transactions": [_transaction_to_json(transaction) for transaction in transactions],
        }
        try:
            replace_file(self._list_path, json.dumps(content).encode())
        except OSError as error:
            self._log_problem(error)
            return False
        self._problem = ""
        return True

    def has(self, begin: Position) -> bool:
        """Return whether all events of the XA transaction that begins at `begin` are saved."""
        return _file_name(begin) in self._saved

    def save(self, begin: Position, blocks: Iterable[Block]) -> bool:
        """Write all events of an XA transaction to its file; return whether that succeeded."""
        self.remove(begin)
        if self.append(begin, blocks):
            self._saved.add(_file_name(begin))
            return True
        self.remove(begin)
        return False

    def append(self, begin: Position, blocks: Iterable[Block]) -> bool:
        """Append the next events of an XA transaction, which is still being read from the log, to its file; return
        whether that succeeded. After its last events `finish_append` is called."""
        path = self._folder / _file_name(begin)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "wb") as file:
                for block in blocks:
                    for part in _encode_block(block):
                        file.write(part)
                if self._sync:
                    file.flush()
                    os.fsync(file.fileno())
        except OSError as error:
            self._log_problem(error)
            return False
        return True

    def finish_append(self, begin: Position) -> None:
        """Note that all events of the XA transaction were appended: from now on it counts as saved."""
        self._saved.add(_file_name(begin))

    def read(self, begin: Position) -> Iterator[Block] | None:
        """Return the saved events of an XA transaction as blocks; None when they are not saved."""
        if not self.has(begin):
            return None
        path = self._folder / _file_name(begin)
        try:
            file = path.open("rb")
        except FileNotFoundError:
            return None
        return self._read_frames(begin, path, file)

    def _read_frames(self, begin: Position, path: Path, file: BinaryIO) -> Iterator[Block]:
        """Yield the blocks of events in the file of an XA transaction."""
        try:
            with file:
                while head := file.read(_HEAD.size):
                    yield _decode_block(head, file)
        except (OSError, ValueError, struct.error) as error:
            raise StoreError(
                f"{path} cannot be read: {error}; it holds rows of an XA transaction that was prepared at {begin}:"
                " stop the instance and remove the file, and they are read from the source's log"
            ) from None

    def remove(self, begin: Position) -> None:
        """Remove the file with the events of an XA transaction, if there is one."""
        name = _file_name(begin)
        self._saved.discard(name)
        try:
            (self._folder / name).unlink(missing_ok=True)
        except OSError as error:
            self._log_problem(error)

    def _log_problem(self, error: OSError) -> None:
        """Log once that the folder cannot be written."""
        if not self._problem:
            log.warning(
                "prepared XA transactions not persisted destination=%s folder=%s reason=%s: a restart searches the"
                " binlog for them",
                *(self._destination, self._folder, error),
            )
        self._problem = str(error)


def _file_name(begin: Position) -> str:
    """Return the file name for the transaction that begins at a position."""
    return f"{begin.epoch}-{begin.file}-{begin.offset}.xa"


def _encode_block(block: Block) -> list[bytes | memoryview]:
    """Return a block as the parts of a frame: head with checksum, description, index, events."""
    bounds, index = block.index.bounds, block.index.to_buffer()
    events, description = block.data[bounds[0] : bounds[-1]], block.encode_description()
    crc = zlib.crc32(events.data, zlib.crc32(index.data, zlib.crc32(description)))
    head = _HEAD.pack(_MAGIC, crc, len(description), index.size, events.size)
    return [head, description, index.data, events.data]


def _decode_block(head: bytes, file: BinaryIO) -> Block:
    """Read the block of a frame; raise ValueError when it is damaged."""
    magic, crc, *sizes = _HEAD.unpack(head)
    description, index, events = (file.read(size) for size in sizes)
    if magic != _MAGIC or zlib.crc32(events, zlib.crc32(index, zlib.crc32(description))) != crc:
        raise ValueError("it is damaged")
    return Block.from_description(
        description, np.frombuffer(events, np.uint8), EventColumns.from_buffer(np.frombuffer(index, np.uint8))
    )


def _transaction_to_json(transaction: PreparedTransaction) -> dict[str, Any]:
    """Return a transaction, without its events, as plain data."""
    fields: dict[str, Any] = {name: getattr(transaction, name).to_json() for name in _POSITIONS}
    fields |= {
        "xid": transaction.xid,
        "since": transaction.since,
        "row_bytes": transaction.row_bytes,
        "rows": transaction.rows,
    }
    return fields | {"outcome": transaction.outcome.to_json() if transaction.outcome is not None else None}


def _transaction_from_json(value: dict[str, Any]) -> PreparedTransaction:
    """Return the transaction that `_transaction_to_json` made plain data of."""
    begin, first, end = (Position.from_json(value[name]) for name in _POSITIONS)
    outcome = Position.from_json(value["outcome"]) if value["outcome"] else None
    rows = int(value["rows"]) if value["rows"] is not None else None
    numbers = int(value["since"]), int(value["row_bytes"])
    return PreparedTransaction(str(value["xid"]), begin, first, end, *numbers, None, rows, outcome)
