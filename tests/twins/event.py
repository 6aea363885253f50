"""Binlog events as bytes: the header, the checksum, and the bodies that frame transactions.

header: timestamp 4 | type 1 | server id 4 | size 4 | end position 4 | flags 2        CRC32 4 at the end
"""

import struct
import uuid
import zlib
from dataclasses import dataclass, replace

MAGIC = b"\xfebin"
ARTIFICIAL, IN_USE = 0x20, 0x01

QUERY, STOP, ROTATE, FORMAT_DESCRIPTION, XID, TABLE_MAP, HEARTBEAT = 2, 3, 4, 15, 16, 19, 27
GTID, ANONYMOUS_GTID, PREVIOUS_GTIDS, XA_PREPARE = 33, 34, 35, 38
MARIADB_ANNOTATE, MARIADB_CHECKPOINT, MARIADB_GTID, MARIADB_GTID_LIST = 160, 161, 162, 163


@dataclass(frozen=True, slots=True)
class Header:
    """What an event's first 19 bytes say besides its type and size."""

    position: int = 4  # where the event begins in the file
    timestamp: int = 1_700_000_000
    server_id: int = 1
    flags: int = 0
    is_made_up: bool = False  # by the server, for the stream: end position 0
    is_checksummed: bool = True
    has_end: bool = True  # MariaDB 11.4 writes no end position into events inside a transaction


def event(kind: int, body: bytes, header: Header) -> bytes:
    size = 19 + len(body) + 4 * header.is_checksummed
    end = 0 if header.is_made_up or not header.has_end else (header.position + size) & 0xFFFFFFFF
    flags = header.flags | (ARTIFICIAL if header.is_made_up else 0)
    head = struct.pack("<IBIIIH", header.timestamp, kind, header.server_id, size, end, flags)
    return with_checksum(head + body) if header.is_checksummed else head + body


def with_checksum(raw: bytes) -> bytes:
    return raw + struct.pack("<I", zlib.crc32(raw))


def format_description(*, is_checksummed: bool, version: str = "10.11.6-MariaDB-log") -> bytes:
    """Version 2 | server version 50 | created 4 | header length 1 | post-header lengths | checksum algorithm 1."""
    lengths = bytes([56, 13, 0, 8, 0, 18, 0, 4, 4, 4, 4, 18, 0, 0, 95, 0, 4, 26, 8, 0, 0, 0, 8, 8, 8, 2])
    return struct.pack("<H50sIB", 4, version.encode(), 0, 19) + lengths + bytes([is_checksummed])


def format_description_event(header: Header, *, is_checksummed: bool, version: str = "10.11.6-MariaDB-log") -> bytes:
    """Carries a checksum even where the events after it do not; the mark of a file in use is not part of it."""
    body = format_description(is_checksummed=is_checksummed, version=version)
    raw = bytearray(event(FORMAT_DESCRIPTION, body, replace(header, flags=0, is_made_up=False)))
    if header.is_made_up:
        raw[13:17] = bytes(4)
        raw[-4:] = with_checksum(bytes(raw[:-4]))[-4:]
    raw[17] |= header.flags
    return bytes(raw)


def rotate(file: str, position: int = 4) -> bytes:
    return struct.pack("<Q", position) + file.encode()


def mysql_gtid(source: uuid.UUID, number: int, commit_us: int | None = None) -> bytes:
    """Flags 1 | uuid 16 | number 8 | 2 | last committed 8 | sequence 8, then from 8.0 on the commit times."""
    body = b"\x00" + source.bytes + struct.pack("<Q", number) + b"\x02" + struct.pack("<QQ", 1, 2)
    if commit_us is None:
        return body
    # The highest bit says that the original commit time, which follows, is another one.
    return body + (commit_us | 1 << 55).to_bytes(7, "little") + (commit_us - 1).to_bytes(7, "little") + b"\xfb"


def mariadb_gtid(domain: int, number: int, *, is_standalone: bool = False) -> bytes:
    """Number 8 | domain 4 | flags 1 | reserved 6; the server's id is the header's."""
    return struct.pack("<QIB6x", number, domain, 1 if is_standalone else 0)


def query(statement: bytes, schema: str = "shop", status: bytes = b"\x00\x00\x00\x00\x00") -> bytes:
    """Thread 4 | seconds 4 | schema length 1 | error 2 | status length 2 | status | schema, 0 | statement."""
    name = schema.encode()
    return struct.pack("<IIBHH", 7, 0, len(name), 0, len(status)) + status + name + b"\x00" + statement


def xid(number: int = 1) -> bytes:
    return struct.pack("<Q", number)
