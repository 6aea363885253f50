"""The head of a log file: which server wrote it, when it was created, and after which GTIDs it begins.

    magic 4 | FORMAT_DESCRIPTION | PREVIOUS_GTIDS or MariaDB's list of GTIDs

An encrypted file has another magic, or MariaDB's START_ENCRYPTION instead of the last.
"""

from dataclasses import dataclass, replace

from penstock.binlog.events.bodies import GtidsBody, parse_body
from penstock.binlog.events.file import check_magic
from penstock.binlog.events.format import parse_format
from penstock.binlog.events.layout import (
    ENCRYPTED_MAGIC,
    FLAGS_AT,
    HEADER,
    IN_USE,
    MAGIC,
    SIZE_AT,
    TYPE_AT,
    EventType,
)
from penstock.binlog.events.problem import EventProblemError, event_error
from penstock.errors import BinlogError
from penstock.model import FileIdentity, GtidSet, Position
from penstock.source.folder import Folder

_LARGEST = 1 << 28


@dataclass(frozen=True, slots=True)
class FileHead:
    """The head of a log file: its identity, the server's version, the GTIDs before it, and whether it is still being
    written."""

    file_identity: FileIdentity
    server_version: str
    gtids: GtidSet | None  # of all transactions before it; None when it does not say
    is_open: bool  # its server was writing it


def read_head(folder: Folder, file: str) -> FileHead | None:
    """Return the head of a file; None when it is not completely there yet."""
    magic = read_bytes(folder, file, 0, len(MAGIC))
    if magic == ENCRYPTED_MAGIC:
        raise _encrypted_error(folder, file)
    if len(magic) == len(MAGIC):
        check_magic(magic, f"{folder.address}/{file}")
    first = _read_event(folder, file, len(MAGIC))
    second = _read_event(folder, file, len(MAGIC) + len(first)) if first else b""
    if not second:
        return None
    try:
        description = parse_format(memoryview(first))
    except EventProblemError as problem:
        raise event_error(first[TYPE_AT], problem.what, first, position=Position(file, len(MAGIC))) from None
    kind = second[TYPE_AT]
    if kind == EventType.MARIADB_START_ENCRYPTION:
        raise _encrypted_error(folder, file)
    gtids = None
    if kind in (EventType.PREVIOUS_GTIDS, EventType.MARIADB_GTID_LIST):
        body = parse_body(kind, second[HEADER : len(second) - description.checksum])
        text = body.text if isinstance(body, GtidsBody) else ""
        gtids = replace(GtidSet.parse(text), is_mariadb=kind == EventType.MARIADB_GTID_LIST)
    is_open = bool(first[FLAGS_AT] & IN_USE)
    return FileHead(
        FileIdentity(file, description.began, description.server_id), description.server_version, gtids, is_open
    )


def read_file_identity(folder: Folder, file: str) -> FileIdentity:
    """Return the identity of a file whose first event is there."""
    header = read_bytes(folder, file, len(MAGIC), HEADER)
    owner = header[TYPE_AT + 1 : TYPE_AT + 5]
    return FileIdentity(file, int.from_bytes(header[:TYPE_AT], "little"), int.from_bytes(owner, "little"))


def read_bytes(folder: Folder, file: str, offset: int, size: int) -> bytes:
    """Return up to `size` bytes of a file, as many as there are."""
    content = memoryview(bytearray(size))
    return bytes(content[: folder.read_into(file, offset, content)])


def _read_event(folder: Folder, file: str, offset: int) -> bytes:
    """Return the event at an offset of the head; empty when it is not completely there."""
    header = read_bytes(folder, file, offset, HEADER)
    if len(header) < HEADER:
        return b""
    size = int.from_bytes(header[SIZE_AT : SIZE_AT + 4], "little")
    if not HEADER <= size <= _LARGEST:
        raise BinlogError(f"{folder.address}/{file}: no event of a log begins at {offset}: {header.hex(' ')}")
    event = read_bytes(folder, file, offset, size)
    return event if len(event) == size else b""


def _encrypted_error(folder: Folder, file: str) -> BinlogError:
    """Return the error for a log file that is encrypted."""
    return BinlogError(
        f"{folder.address}/{file} is encrypted, and only its server has the key: capture from the server instead"
    )
