"""The ids of XA transactions, as the log writes them.

MySQL     GTID, QUERY "XA START …",            rows, QUERY "XA END …", XA_PREPARE     later GTID, QUERY "XA COMMIT …"
MariaDB   GTID with the id (flag PREPARED_XA), rows, QUERY "XA END …", XA_PREPARE     later GTID, QUERY "XA COMMIT …"

XA_PREPARE       is one phase 1 | format 4 | global size 4 | branch size 4 | global part, branch part
GTID of MariaDB  number 8 | domain 4 | flags 1 | commit id 8 if flags & 2 | format 4 | sizes 1, 1 | the two parts

An XA_PREPARE with one phase is the commit: nothing comes later. An id is the same text wherever it was read from.
"""

import re

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import EventType
from penstock.binlog.events.problem import event_error
from penstock.binlog.events.query import body_at, parse_query_at
from penstock.errors import BinlogError
from penstock.model import Position

GTID_FLAGS, PREPARED_XA = 12, 0x40  # of MariaDB's GTID
_HAS_COMMIT_ID = 0x02
_FORMAT_BITS = 0xFFFFFFFF
_WORDS = re.compile(r"XA\s+(\w+)\s+(.*)", re.IGNORECASE | re.DOTALL)


def parse_prepare(block: Block, event: int) -> tuple[str, bool]:
    """Return the id in an XA_PREPARE, and whether it commits in one phase."""
    body = body_at(block, event)
    sizes = [int.from_bytes(body[at : at + 4], "little") for at in (5, 9)]
    if len(body) < 13 + sum(sizes):
        raise _cut_short(block, event, body)
    middle = 13 + sizes[0]
    return _xid(body[1:5], body[13:middle], body[middle : middle + sizes[1]]), bool(body[0])


def parse_gtid(block: Block, event: int) -> str:
    """Return the id in a GTID of MariaDB that begins an XA transaction."""
    body = body_at(block, event)
    at = GTID_FLAGS + 1 + (8 if body[GTID_FLAGS] & _HAS_COMMIT_ID else 0)
    if len(body) < at + 6 or len(body) < at + 6 + body[at + 4] + body[at + 5]:
        raise _cut_short(block, event, body)
    middle = at + 6 + body[at + 4]
    return _xid(body[at : at + 4], body[at + 6 : middle], body[middle : middle + body[at + 5]])


def parse_statement(block: Block, event: int) -> tuple[str, str]:
    """Return the word after XA of a QUERY, in capitals, and the id; two empty texts for any other statement."""
    match = _WORDS.fullmatch(parse_query_at(block, event).text.strip())
    return (match[1].upper(), _same_text(match[2].strip())) if match is not None else ("", "")


def _same_text(text: str) -> str:
    """Return an id of a statement as the events have it: their number of the format has 32 bits, MySQL's text 64."""
    same = text.lower().replace("x'", "X'")
    parts, _, number = same.rpartition(",")
    return f"{parts},{int(number) & _FORMAT_BITS}" if parts and number.lstrip("-").isdigit() else same


def has_prepared_flag(block: Block, event: int) -> bool:
    """Return whether an event is a GTID of MariaDB that begins an XA transaction."""
    if block.column("kind")[event] != EventType.MARIADB_GTID:
        return False
    body = body_at(block, event)
    return len(body) > GTID_FLAGS and bool(body[GTID_FLAGS] & PREPARED_XA)


def _cut_short(block: Block, event: int, body: bytes) -> BinlogError:
    position = Position(block.file, int(block.column("position")[event]))
    return event_error(
        int(block.column("kind")[event]), "it ends inside the id of its XA transaction", body, position=position
    )


def _xid(number: bytes, whole: bytes, branch: bytes) -> str:
    return f"X'{whole.hex()}',X'{branch.hex()}',{int.from_bytes(number, 'little')}"
