"""What tests of JSON columns on real servers share: a log file of their own, random documents, the server's text."""

import random
import struct
from pathlib import Path
from typing import Any

from penstock.testing import DatabaseServer


def new_file(server: DatabaseServer) -> Path:
    """The log file that is written from now on."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SHOW BINARY LOGS")
        return server.data / cursor.fetchall()[-1][0]


def printed(server: DatabaseServer, raw: bytes | None) -> bytes | None:
    """The server's text; up to 8.0.12 it breaks the lines of base64 with the character itself, which is no JSON, and
    5.7 prints halves of surrogate pairs, which are no UTF-8.
    """
    if raw is None:
        return None
    if not server.version.startswith("9"):
        raw = raw.replace(b"\n", rb"\n")
    return raw.replace(b"\xed\xa0\x80", rb"\ud800").replace(b"\xed\xbf\xbf", rb"\udfff")


def random_text(chance: random.Random) -> str:
    alphabet = chance.choice(("abc xyz", "aé字😀\u2028\x7f", '\x01\n\t"\\/\b\f\r\x1f'))
    return "".join(chance.choices(alphabet, k=chance.choice((0, 1, 5, 20, 150))))


def random_value(chance: random.Random, depth: int = 0) -> Any:
    choice = chance.randrange(9 if depth < 5 else 6)
    match choice:
        case 0:
            return chance.choice((None, True, False))
        case 1 | 2:
            size = chance.choice((7, 8, 15, 16, 31, 32, 63))
            return chance.choice((1, -1)) * chance.randrange(1 << size)
        case 3:
            return random_double(chance)
        case 4 | 5:
            return random_text(chance)
        case 6 | 7:
            return {random_text(chance): random_value(chance, depth + 1) for _ in range(chance.randrange(6))}
        case _:
            return [random_value(chance, depth + 1) for _ in range(chance.randrange(6))]


def random_double(chance: random.Random) -> float:
    choice = chance.randrange(4)
    if choice == 0:
        return round(chance.uniform(-1e6, 1e6), chance.randrange(6))
    if choice == 1:
        return chance.choice((1, -1)) * chance.randrange(10**6) * 10.0 ** chance.randrange(-25, 25)
    if choice == 2:
        return 2.0 ** chance.randrange(-1074, 1024)
    bits = chance.getrandbits(64)
    return struct.unpack("<d", struct.pack("<Q", bits if bits >> 52 & 2047 != 2047 else 1))[0]
