"""Makes collations.txt and charsets.npz in src/penstock/binlog/values from the servers that the tests use.

    python -m tools.make_charsets

Both come from MySQL 5.7, 8.0, 9 and MariaDB 10.11 together: the numbers of their collations, and what they make of
every byte, pair of bytes, triple after 0x8F (ujis, eucjpms) and four bytes (gb18030) when they convert a text to
utf8mb4. Nothing is written unless the servers agree. They do, on every sequence that all of them take for a character.
Where they differ:

- gb18030 exists in MySQL only.
- Half a surrogate pair in ucs2 or utf32: MySQL 8.0 and 9 do not convert it, MySQL 5.7 and MariaDB write it as three
  bytes, which is no UTF-8. (Those charsets have no table; we write U+FFFD.)
- Bytes from 0x80 on in ascii: a question mark; in MySQL 9 the end of the text.
- eucjpms: MySQL takes the single bytes 0x80–0x8D, 0x90–0xA0 and 0xFF for characters, though for none of Unicode's. Only
  what all servers take is in the table.
- A wrong sequence ends the text in MySQL; MariaDB continues with a question mark for each byte.

A character that the servers know and Unicode does not (a question mark in utf8mb4) is U+FFFD in the table. Tables hold
the differences between neighbours, which pack better.
"""

import itertools
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from pymysql.cursors import Cursor

from penstock.binlog.values.charset import TABLES, TEXT
from penstock.testing import DatabaseServer
from tests.services.mariadb import MariaDBService
from tests.services.mysql import MYSQL_5_7, MYSQL_8_0, MYSQL_9

FOLDER = Path(__file__).parents[1] / "src" / "penstock" / "binlog" / "values"
SERVERS = (MYSQL_9, MYSQL_8_0, MYSQL_5_7, MariaDBService())
UNKNOWN = "\ufffd"

BYTES = [bytes([byte]) for byte in range(256)]
PAIRS = [bytes([0x80 | first, second]) for first in range(128) for second in range(256)]
TRIPLES = [bytes([0x8F, first, second]) for first in range(256) for second in range(256)]

# MariaDB reserves 32 numbers from 576 on for its own collations of each of these charsets, 1024 more for those that do
# not pad, and 256 from 2048 on for collations of UCA 14. Releases after 10.11 fill more of each. Those after 11.4 have
# MySQL's utf8mb4_0900 collations under MySQL's numbers, gaps of MySQL's own list among them.
_OWN = {"utf8mb3": 576, "utf8mb4": 608, "ucs2": 640, "utf16": 672, "utf16le": 704, "utf32": 736}
_UCA14 = {"utf8mb3": 2048, "utf8mb4": 2304, "ucs2": 2560, "utf16": 2816, "utf32": 3072}
RULES = [
    *((charset, range(first, first + 32)) for charset, first in _OWN.items()),
    *((charset, range(first + 1024, first + 1024 + 32)) for charset, first in _OWN.items()),
    *((charset, range(first, first + 256)) for charset, first in _UCA14.items()),
    ("utf8mb4", range(255, 324)),
]


def four_bytes(number: int) -> bytes:
    """gb18030's four-byte sequences in their order."""
    number, fourth = divmod(number, 10)
    number, third = divmod(number, 126)
    first, second = divmod(number, 10)
    return bytes([0x81 + first, 0x30 + second, 0x81 + third, 0x30 + fourth])


FOURS = [four_bytes(number) for number in range(39_420)]  # those of U+0080 … U+FFFF; 0x8431A439 is the last


def store(cursor: Cursor, sequences: Iterable[bytes]) -> None:
    """Put what `converted` is to ask about into a table of the cursor's database."""
    rows = ",".join(f"(x'{each.hex()}')" for each in sequences)
    cursor.execute("SET sql_mode = '', sql_log_bin = 0, group_concat_max_len = 4000000")
    cursor.execute("DROP TABLE IF EXISTS sequences")
    cursor.execute("CREATE TABLE sequences (bytes VARBINARY(8))")
    cursor.execute(f"INSERT INTO sequences VALUES {rows}")


def converted(cursor: Cursor, charset: str) -> dict[bytes, str]:
    """The stored sequences that are one character of a charset, and that character."""
    text = f"CONVERT(bytes USING {charset})"
    cursor.execute(
        f"SELECT GROUP_CONCAT(HEX(bytes), ' ', HEX({text}), ' ', HEX(CONVERT({text} USING utf8mb4))) FROM sequences"
    )
    (answer,) = cursor.fetchone() or ("",)
    characters: dict[bytes, str] = {}
    for line in answer.split(","):
        asked, kept, utf8 = line.split(" ")
        # Python's errors only where a server writes surrogates.
        sequence, character = bytes.fromhex(asked), bytes.fromhex(utf8).decode(errors="replace")
        if kept == asked and len(character) == 1:
            characters[sequence] = UNKNOWN if character == "?" and charset in TABLES and sequence != b"?" else character
    return characters


def collations(cursor: Cursor) -> dict[int, str]:
    cursor.execute("SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATIONS WHERE ID IS NOT NULL")
    rows = list(cursor.fetchall())
    if _is_mariadb(cursor):
        cursor.execute("SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY")
        rows += cursor.fetchall()
    return {number: "utf8mb3" if charset == "utf8" else charset for number, charset in rows}


def _is_mariadb(cursor: Cursor) -> bool:
    cursor.execute("SELECT VERSION()")
    (version,) = cursor.fetchone() or ("",)
    return "MariaDB" in version


def _same(what: str, answers: Iterable[dict[Any, str]]) -> dict[Any, str]:
    """What all answers have; an error when two answer otherwise."""
    first, *others = answers
    for other in others:
        different = [key for key in first.keys() & other.keys() if first[key] != other[key]]
        if different:
            raise SystemExit(f"the servers differ in {what}: {different[:9]}")
        missing = first.keys() ^ other.keys()
        if missing:
            print(f"{what}: {len(missing)} sequences are not in every server")
        first = {key: value for key, value in first.items() if key in other}
    return first


def make_collations(cursors: list[Cursor]) -> str:
    names: dict[int, str] = {}
    for charsets in [*map(collations, cursors), *(dict.fromkeys(numbers, charset) for charset, numbers in RULES)]:
        wrong = [number for number in names.keys() & charsets.keys() if names[number] != charsets[number]]
        if wrong:
            raise SystemExit(f"two charsets for collations {wrong}")
        names |= charsets
    if set(names.values()) != TEXT - {"utf8"} | {"binary"}:
        raise SystemExit(f"charset.py has other charsets than the servers: {set(names.values()) ^ TEXT}")
    lines: list[str] = []
    for charset in sorted(set(names.values())):
        numbers = sorted(number for number, name in names.items() if name == charset)
        lines.append(" ".join([charset, *_ranges(numbers)]))
    return "\n".join([*lines, ""])


def _ranges(numbers: list[int]) -> Iterator[str]:
    for _, group in itertools.groupby(enumerate(numbers), lambda each: each[1] - each[0]):
        run = [number for _, number in group]
        yield f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0])


def make_tables(cursors: list[Cursor]) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    for charset, known in _ask(cursors, TABLES, BYTES + PAIRS):
        if TABLES[charset] == 1:
            tables[charset] = np.array([ord(known.get(byte, UNKNOWN)) for byte in BYTES], np.uint16)
            continue
        if any(known[byte] != byte.decode() for byte in BYTES[:128]):
            raise SystemExit(f"the kernel takes bytes below 0x80 for ASCII, which they are not in {charset}")
        tables[charset] = _table({int.from_bytes(sequence, "big"): text for sequence, text in known.items()})
    for charset, known in _ask(cursors, ["ujis", "eucjpms"], TRIPLES):
        tables[f"{charset}.3"] = _table({int.from_bytes(sequence[1:], "big"): text for sequence, text in known.items()})
    for charset, known in _ask(cursors, ["gb18030"], FOURS):
        tables[f"{charset}.4"] = np.array([ord(known[sequence]) for sequence in FOURS], np.uint16)
    return tables


def _ask(
    cursors: list[Cursor], charsets: Iterable[str], sequences: list[bytes]
) -> Iterator[tuple[str, dict[bytes, str]]]:
    for cursor in cursors:
        store(cursor, sequences)
    for charset in charsets:
        asked = [cursor for cursor in cursors if charset != "gb18030" or not _is_mariadb(cursor)]
        yield charset, _same(charset, [converted(cursor, charset) for cursor in asked])


def _table(texts: dict[int, str]) -> Any:
    """0 for what is no sequence."""
    table = np.zeros(65_536, np.uint16)
    for number, text in texts.items():
        table[number] = ord(text)
    return table


@contextmanager
def _cursors() -> Iterator[list[Cursor]]:
    # Not closed to the user that some servers run as.
    folder = Path(tempfile.mkdtemp(prefix="penstock-charsets-"))
    folder.chmod(0o755)
    servers: list[DatabaseServer] = []
    try:
        for service in SERVERS:
            servers.append(service.server(folder / service.name))
            servers[-1].start()
        cursors = [server.connect(charset="utf8mb4").cursor() for server in servers]
        for cursor in cursors:
            cursor.execute("CREATE DATABASE charsets")
            cursor.execute("USE charsets")
        yield cursors
    finally:
        for server in servers:
            server.kill()
        shutil.rmtree(folder)


def main() -> None:
    with _cursors() as cursors:
        numbers, tables = make_collations(cursors), make_tables(cursors)
    (FOLDER / "collations.txt").write_text(numbers, encoding="ascii")
    differences = {name: np.diff(table, prepend=np.zeros(1, np.uint16)) for name, table in tables.items()}
    np.savez_compressed(FOLDER / "charsets.npz", **differences)


if __name__ == "__main__":
    main()
