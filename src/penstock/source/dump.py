"""The commands with which a replica requests a log.

COM_BINLOG_DUMP       position 4 | flags 2 | server id 4 | file
COM_BINLOG_DUMP_GTID  flags 2 | server id 4 | length of the file 4 | file | position 8 | length of the set 4 | set
A set                 sources 8 | each: uuid 16 | ranges 8 | each: first 8, last + 1 8
  with tags           1 | sources 6 | 1 | each: uuid 16 | twice the length of the tag 1 | tag | ranges as above
MariaDB takes its set as a session variable, and then COM_BINLOG_DUMP without a file. It leaves the statements behind
rows out unless a flag asks for them.
"""

import struct
from uuid import UUID

from penstock.model import GtidSet, Position

COM_BINLOG_DUMP = 0x12
COM_BINLOG_DUMP_GTID = 0x1E
_FIRST = 4  # byte of a file after its magic
_BY_GTID = 0x04
_WITH_ANNOTATIONS = 0x02  # for MariaDB; to MySQL it means nothing
_WITH_TAGS = 1


def dump_from_position(start: Position, server_id: int, *, annotations: bool = False) -> bytes:
    """Return the arguments of COM_BINLOG_DUMP that request the log from a position."""
    flags = _WITH_ANNOTATIONS if annotations else 0
    return struct.pack("<IHI", start.offset, flags, server_id) + start.file.encode()


def dump_from_beginning(server_id: int, *, annotations: bool = False) -> bytes:
    """Return the arguments of COM_BINLOG_DUMP that request the log from its beginning, or from where MariaDB's session
    variable says."""
    return struct.pack("<IHI", _FIRST, _WITH_ANNOTATIONS if annotations else 0, server_id)


def dump_after_gtids(executed: GtidSet, server_id: int) -> bytes:
    """Return the arguments of COM_BINLOG_DUMP_GTID that request all transactions of a MySQL server that are not in the
    set."""
    encoded = encode_gtid_set(executed)
    return struct.pack("<HIIQI", _BY_GTID, server_id, 0, _FIRST, len(encoded)) + encoded


def encode_gtid_set(executed: GtidSet) -> bytes:
    """Encode a GTID set in MySQL's binary form."""
    has_tags = any(":" in source for source in executed.ranges)
    head = len(executed.ranges)
    if has_tags:
        head = _WITH_TAGS << 56 | head << 8 | _WITH_TAGS
    parts = [struct.pack("<Q", head)]
    for source, ranges in sorted(executed.ranges.items()):
        uuid, _, tag = source.partition(":")
        parts.append(UUID(uuid).bytes)
        if has_tags:
            parts.append(bytes([len(tag) << 1]) + tag.encode("ascii"))
        parts.append(struct.pack("<Q", len(ranges)))
        parts += [struct.pack("<QQ", first, last + 1) for first, last in ranges]
    return b"".join(parts)
