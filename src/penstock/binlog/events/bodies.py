"""What the events around the rows say: statements, variables, GTID sets, notes. For people and for DDL; not for speed.

QUERY           thread 4 | seconds 4 | database length 1 | error 2 | variables length 2 | variables | database, 0 | text
INTVAR          1 last insert id, 2 insert id | value 8
RAND            seed 8 | seed 8
USER_VAR        name length 4, name | is null 1 | type 1 | collation 4 | length 4, value | flags 1 (1: unsigned)
ROWS_QUERY      length 1 (not to be trusted) | statement          ANNOTATE_ROWS  statement
PREVIOUS_GTIDS  sources 8 (with tags: 1, sources 6, 1); each: uuid 16, tag, ranges 8, (first 8, after the last 8)*
GTID_LIST       count 4 (lowest 28 bits) | (domain 4, server 4, number 8)*
"""

import struct
import uuid
from dataclasses import dataclass

from penstock.binlog.events.layout import EventType
from penstock.binlog.events.problem import event_error
from penstock.binlog.values.charset import charset_of_collation_id
from penstock.binlog.values.problem import ValueProblemError
from penstock.binlog.values.text import decode_text

_STATEMENT_AT = 13
LOAD_HEAD = 13  # bytes more in the head of EXECUTE_LOAD_QUERY: file 4 | its name in the text 4, 4 | duplicates 1
_CHARSET_NUMBERS = 3
_USER_VAR_TYPES = {0: "text", 1: "real", 2: "integer", 4: "decimal"}
# Status variables of a fixed size; the others say theirs. An unknown one ends the list: later servers add to its end.
_FIXED_SIZES = {
    0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 10: 4, 13: 3, 16: 1, 17: 8, 18: 2, 19: 1, 20: 1, 21: 1, 128: 3, 129: 8,
}  # fmt: skip
_FLAGS, _SQL_MODE, _OLD_CATALOG, _INCREMENT, _CHARSET, _TIME_ZONE, _CATALOG = 0, 1, 2, 3, 4, 5, 6
_DATABASE_CHARSET, _INVOKER, _DATABASES, _MICROSECONDS, _MARIADB_MICROSECONDS = 8, 11, 12, 13, 128
_EXPLICIT_TIMESTAMPS = 16


@dataclass(frozen=True, slots=True)
class QueryBody:
    """The body of a QUERY event: a statement, its database, and the session variables that it was run with."""

    database: str
    text: str
    thread: int
    seconds: int
    error: int
    sql_mode: int | None = None
    charset: str = ""  # of the client, in which the text is
    collation: int | None = None  # of the connection
    database_collation: int | None = None
    time_zone: str = ""
    microseconds: int | None = None  # of the event's time
    auto_increment: tuple[int, int] | None = None  # increment, offset
    invoker: str = ""
    databases: tuple[str, ...] = ()  # that the statement touches
    server_collation: int | None = None  # what databases get that do not say theirs
    explicit_timestamps: bool | None = None  # explicit_defaults_for_timestamp


@dataclass(frozen=True, slots=True)
class StatementVariable:
    """The body of an INTVAR, RAND or USER_VAR event: a variable that the statement after it uses."""

    name: str
    value: str | int | float | None


@dataclass(frozen=True, slots=True)
class TextBody:
    """The body of an event that holds one text: the statement behind rows (ROWS_QUERY, ANNOTATE_ROWS), a log file
    (ROTATE, BINLOG_CHECKPOINT), an incident."""

    text: str


@dataclass(frozen=True, slots=True)
class GtidsBody:
    """The body of a PREVIOUS_GTIDS or GTID_LIST event: all GTIDs before a file, as MySQL's `uuid:1-5,uuid:tag:1` or
    MariaDB's `0-1-7,1-1-3`."""

    text: str


@dataclass(slots=True)
class _Bytes:
    kind: int
    data: bytes
    at: int = 0

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes, and step over them. Raises BinlogError when fewer are left."""
        if size < 0 or self.at + size > len(self.data):
            problem = f"it ends early: {size} bytes wanted at {self.at} of {len(self.data)}"
            raise event_error(self.kind, problem, self.data[self.at :])
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        """Return the next unsigned little-endian number of `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    @property
    def is_done(self) -> bool:
        """Return whether all bytes were read."""
        return self.at >= len(self.data)


Body = QueryBody | StatementVariable | TextBody | GtidsBody | None


def parse_body(kind: int, body: bytes) -> Body:
    """Parse the body of one of the events above, without header and checksum; return None for other events. Errors do
    not name the position."""
    data = _Bytes(kind, body)
    match kind:
        case EventType.QUERY | EventType.EXECUTE_LOAD_QUERY:
            return _statement(data)
        case EventType.INTVAR:
            return StatementVariable({1: "LAST_INSERT_ID", 2: "INSERT_ID"}.get(data.number(1), "?"), data.number(8))
        case EventType.RAND:
            return StatementVariable("RAND", f"{data.number(8)}, {data.number(8)}")
        case EventType.USER_VAR:
            return _user_variable(data)
        case EventType.ROWS_QUERY:
            data.take(1)
            return TextBody(data.data[1:].decode("utf-8", "replace"))
        case EventType.MARIADB_ANNOTATE_ROWS:
            return TextBody(body.decode("utf-8", "replace"))
        case EventType.ROTATE:
            data.take(8)
            return TextBody(body[8:].decode("utf-8", "replace"))
        case EventType.MARIADB_BINLOG_CHECKPOINT:
            return TextBody(data.take(data.number(4)).decode("utf-8", "replace"))
        case EventType.INCIDENT:
            number = data.number(2)
            return TextBody(f"{number} {data.take(data.number(1)).decode('utf-8', 'replace')}".strip())
        case EventType.PREVIOUS_GTIDS:
            return GtidsBody(_previous_gtids(data))
        case EventType.MARIADB_GTID_LIST:
            count = data.number(4) & 0xFFFFFFF
            triples = [struct.unpack("<IIQ", data.take(16)) for _ in range(min(count, len(body) // 16 + 1))]
            return GtidsBody(",".join(f"{domain}-{server}-{number}" for domain, server, number in triples))
        case _:
            return None


def _statement(data: _Bytes) -> QueryBody:
    thread, seconds, length, error, size = struct.unpack("<IIBHH", data.take(_STATEMENT_AT))
    if data.kind == EventType.EXECUTE_LOAD_QUERY:
        data.take(LOAD_HEAD)
    variables = _variables(_Bytes(data.kind, data.take(size)))
    database = data.take(length + 1)[:-1].decode("utf-8", "replace")
    charset, collation, server_collation = "utf8mb4", None, None
    if _CHARSET in variables:
        client, collation, server_collation = struct.unpack("<HHH", variables[_CHARSET])
        charset = charset_of_collation_id(client)
    increment = variables.get(_INCREMENT)
    micros = variables.get(_MICROSECONDS, variables.get(_MARIADB_MICROSECONDS))

    def number(code: int) -> int | None:
        return int.from_bytes(variables[code], "little") if code in variables else None

    return QueryBody(
        database,
        _text(charset, data.data[data.at :]),
        thread,
        seconds,
        error,
        number(_SQL_MODE),
        charset,
        collation,
        number(_DATABASE_CHARSET),
        variables.get(_TIME_ZONE, b"").decode("ascii", "replace"),
        int.from_bytes(micros, "little") if micros is not None else None,
        (increment[0] | increment[1] << 8, increment[2] | increment[3] << 8) if increment else None,
        variables.get(_INVOKER, b"").decode("utf-8", "replace"),
        tuple(name.decode("utf-8", "replace") for name in variables.get(_DATABASES, b"").split(b"\0")[:-1]),
        server_collation,
        None if (explicit := number(_EXPLICIT_TIMESTAMPS)) is None else bool(explicit),
    )


def _text(charset: str, raw: bytes) -> str:
    """Return text in an unknown charset as UTF-8 with replacements: it is for people to read."""
    try:
        return decode_text(charset, raw)
    except ValueProblemError:
        return raw.decode("utf-8", "replace")


def _variables(data: _Bytes) -> dict[int, bytes]:
    variables: dict[int, bytes] = {}
    while not data.is_done:
        code = data.number(1)
        if code in _FIXED_SIZES:
            variables[code] = data.take(_FIXED_SIZES[code])
        elif code in (_TIME_ZONE, _CATALOG):
            variables[code] = data.take(data.number(1))
        elif code == _OLD_CATALOG:
            variables[code] = data.take(data.number(1) + 1)
        elif code == _INVOKER:
            user, host = data.take(data.number(1)), data.take(data.number(1))
            variables[code] = user + b"@" + host
        elif code == _DATABASES:
            variables[code] = _names(data)
        else:
            break
    return variables


def _names(data: _Bytes) -> bytes:
    """Return the names of databases, each ended by 0; more than 16 are written as none."""
    count, first = data.number(1), data.at
    for _ in range(count if count < 254 else 0):
        end = data.data.find(b"\0", data.at)
        data.take(end + 1 - data.at if end >= 0 else len(data.data) + 1)
    return data.data[first : data.at]


def _user_variable(data: _Bytes) -> StatementVariable:
    name = data.take(data.number(4)).decode("utf-8", "replace")
    if data.number(1):
        return StatementVariable(name, None)
    kind, collation = _USER_VAR_TYPES.get(data.number(1), "?"), data.number(4)
    raw = data.take(data.number(4))
    is_unsigned = not data.is_done and data.number(1) & 1
    match kind:
        case "real" if len(raw) == 8:
            return StatementVariable(name, struct.unpack("<d", raw)[0])
        case "integer":
            return StatementVariable(name, int.from_bytes(raw, "little", signed=not is_unsigned))
        case "decimal":
            return StatementVariable(name, _decimal(raw))
        case _:
            return StatementVariable(name, _text(charset_of_collation_id(collation), raw))


def _decimal(raw: bytes) -> str:
    """Return a DECIMAL as text. It is stored as precision 1 | scale 1 | digits as in a row."""
    if len(raw) < 3:
        return raw.hex()
    precision, scale = raw[:2]
    is_negative = not raw[2] & 0x80
    plain = bytearray(byte ^ 0xFF for byte in raw[2:]) if is_negative else bytearray(raw[2:])
    plain[0] ^= 0x80
    whole, at, text = precision - scale, 0, ""
    sizes = [whole % 9] * bool(whole % 9) + [9] * (whole // 9) + [9] * (scale // 9) + [scale % 9] * bool(scale % 9)
    for digits in sizes:
        size = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)[digits]
        text += str(int.from_bytes(plain[at : at + size], "big")).zfill(digits)
        at += size
    number = (text[:whole].lstrip("0") or "0") + ("." + text[whole:] if scale else "")
    return "-" * is_negative + number


def _previous_gtids(data: _Bytes) -> str:
    head = data.take(8)
    has_tags = head[0] == 1 and head[7] == 1
    count = int.from_bytes(head[1:7] if has_tags else head, "little")
    sets: list[str] = []
    for _ in range(count):
        text = str(uuid.UUID(bytes=data.take(16)))
        if has_tags:
            tag = data.take(data.number(1) >> 1).decode("ascii", "replace")
            text += f":{tag}" if tag else ""
        for _ in range(data.number(8)):
            first, after = data.number(8), data.number(8)
            text += f":{first}" if after == first + 1 else f":{first}-{after - 1}"
        sets.append(text)
    return ",".join(sets)
