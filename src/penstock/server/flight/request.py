"""Parses what a ticket, a descriptor or an action asks for: a JSON object; a ticket may also be just the name of a
table."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, cast

from penstock.errors import ConfigurationError, PenstockError, ProtocolError
from penstock.instance import Instance
from penstock.instance.filter import parse_client_filter
from penstock.model import GtidSet, Position, TableName
from penstock.model.start_point import Moment, StartWord, parse_start
from penstock.store import Start
from penstock.store.rows_filter import TableFilter

MAX_REQUEST_BYTES = 1 << 20  # of a ticket, a descriptor or an action
MAX_NAMES = 4096  # of tables or columns in one request; a server's table has no more columns
_MAX_NUMBER = (1 << 63) - 1
_KEYS = {"destination", "tables", "filter", "columns", "form", "start", "end", "client", "chunk", "key", "in_pieces"}


ChunkBounds = tuple[tuple[str, ...] | None, tuple[str, ...] | None]
"""The keys behind which a chunk of a table begins, and with which it ends; None is no limit."""


@dataclass(frozen=True, slots=True)
class FlightRequest:
    """What one stream shall contain. Without an end it never ends; with a client it is what that client has subscribed
    to."""

    destination: str
    tables: tuple[TableName, ...] = ()
    filter: str = ""
    columns: tuple[str, ...] = ()
    form: Literal["decoded", "raw"] = "decoded"
    start: Any = "latest"
    end: Any = None
    client: int | None = None
    chunk: ChunkBounds | None = None  # instead of changes: rows of a table as they were at the end
    key: str | None = None  # of a chunk: what the order of keys depended on when it was planned
    in_pieces: bool = False  # a large range is cut into parts by several calls, each of which says what is left

    @classmethod
    def from_ticket(cls, raw: bytes) -> "FlightRequest":
        """Parse a ticket: JSON, or `DESTINATION/SCHEMA.TABLE`."""
        check_size(raw)
        text = raw.strip()
        if text.startswith(b"{"):
            return cls.from_json(read_json(raw))
        try:
            destination, _, table = text.decode().rpartition("/")
            return cls(destination or "default", (TableName.parse(table),))
        except (UnicodeDecodeError, PenstockError):
            raise ProtocolError("a ticket is JSON, or the name of a table such as shop.products") from None

    @classmethod
    def from_path(cls, path: list[bytes]) -> "FlightRequest":
        """Parse the path of a descriptor: a destination, or a destination and a table, as `list_flights` shows them."""
        texts = [part.decode(errors="replace") for part in path]
        match texts:
            case [destination]:
                return cls(destination, form="raw")
            case [destination, table]:
                return cls(destination, (TableName.parse(table),))
            case _:
                raise ProtocolError("a path is a destination, and maybe one of its tables")

    @classmethod
    def from_json(cls, arguments: Mapping[str, Any]) -> "FlightRequest":
        """Parse a JSON request. Raises ProtocolError for unknown keys and contradictions."""
        if unknown := arguments.keys() - _KEYS:
            raise ProtocolError(
                f"nobody knows what {', '.join(sorted(unknown))} is; there is {', '.join(sorted(_KEYS))}"
            )
        tables = read_texts(arguments, "tables")
        form, client = arguments.get("form", "decoded"), arguments.get("client")
        if form not in ("decoded", "raw"):
            raise ProtocolError(f"the form is decoded or raw, not {form!r}")
        if client is not None and ("start" in arguments or arguments.get("end") is not None):
            raise ProtocolError("a client resumes at its cursor: it has no start and no end")
        pattern = read_text(arguments, "filter", "")
        if tables and pattern:
            raise ProtocolError("say either tables or a filter")
        chunk = read_chunk(arguments["chunk"]) if "chunk" in arguments else None
        if chunk is not None and (len(tables) != 1 or not isinstance(arguments.get("end"), dict)):
            raise ProtocolError("a chunk is of one table, as it was at the position `end`")
        columns = read_texts(arguments, "columns")
        if columns and (len(tables) != 1 or form == "raw"):
            raise ProtocolError("columns are chosen of one table, decoded")
        parse_client_filter(pattern)  # refuses what is none
        for key in ("start", "end"):
            if isinstance(arguments.get(key), dict):
                _parse_position(arguments[key])
        return cls(
            read_text(arguments, "destination", "default"),
            tuple(TableName.parse(name) for name in tables),
            pattern,
            columns,
            form,
            arguments.get("start", "latest"),
            arguments.get("end"),
            None if client is None else read_client(arguments),
            chunk,
            None if chunk is None or "key" not in arguments else read_text(arguments, "key"),
            arguments.get("in_pieces") is True,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the request as JSON that `from_json` reads; this is what tickets hold."""
        fields: dict[str, Any] = {"destination": self.destination, "form": self.form}
        if self.tables:
            fields["tables"] = [str(table) for table in self.tables]
        if self.client is not None:
            return fields | {"client": self.client}
        options = {"filter": self.filter, "columns": list(self.columns), "start": self.start, "end": self.end}
        if self.chunk is not None:
            fields["chunk"] = list(self.chunk)
        return fields | {key: value for key, value in options.items() if value}

    def describe(self) -> str:
        """Return the request as text for a log line, without the keys of a chunk, which are values of rows."""
        fields = self.to_json()
        fields.pop("chunk", None)
        return json.dumps(fields)

    @property
    def table_predicate(self) -> TableFilter | None:
        """Return a predicate for the tables that the request selects, or None for all tables."""
        return frozenset(self.tables).__contains__ if self.tables else parse_client_filter(self.filter)

    def resolve_range(self, instance: Instance) -> tuple[Position, Position]:
        """Return the positions where the requested range starts and ends."""
        start, end = (_locate(resolve_start(point, instance), instance) for point in (self.start, self.end))
        if end < start:
            raise ProtocolError(f"{end} is before {start}")
        return start, end


def resolve_start(start: Any, instance: Instance) -> Start:  # noqa: PLR0911 - one for each way to write it
    """Return where a client starts, from a text in the grammar of `parse_start` or from a position as JSON."""
    if not isinstance(start, str):
        return Start.cursor(resolve_position(start, instance))
    try:
        point = parse_start(start, datetime.now(UTC))
    except ConfigurationError as error:
        raise ProtocolError(str(error)) from None
    match point:
        case StartWord.LATEST:
            return Start.latest()
        case StartWord.STORED:
            return Start.stored()
        case StartWord.EARLIEST:
            return Start.cursor(instance.oldest_position())
        case Moment(us):
            return Start.at_time(us)
        case Position():
            return Start.cursor(replace(point, epoch=instance.source_log.epoch))
        case GtidSet():
            return _start_after_gtids(point, instance)


def _start_after_gtids(gtids: GtidSet, instance: Instance) -> Start:
    """Return a start after the transactions of a GTID set."""
    resolver = instance.source_log.resolver
    resolver.check_was_executed(gtids)
    if gtids.is_single and not gtids.is_mariadb:  # each of MariaDB's is a position by itself
        return Start.after_gtid(gtids.text)
    return Start.cursor(resolver.find_after_gtids(gtids))


def _locate(start: Start, instance: Instance) -> Position:
    """Return the log position of a start."""
    match start.kind:
        case "latest":
            return instance.store.latest
        case "stored":
            return instance.store.first
        case _:
            return start.position or instance.source_log.find(start)


def resolve_position(position: Any, instance: Instance) -> Position:
    """Return a position from `FILE:OFFSET`, which is of the present log, or from JSON as streams send it."""
    if isinstance(position, str):
        return Position.parse(position, instance.source_log.epoch)
    if not isinstance(position, dict):
        raise ProtocolError(f"not a position in the log: {json.dumps(position)[:200]}")
    return _parse_position(cast("dict[str, Any]", position))


def _parse_position(fields: dict[str, Any]) -> Position:
    """Parse a position as streams send it: {epoch, file, offset, gtids}. Raises ProtocolError."""
    shown = json.dumps(fields)[:200]
    for key in ("offset", "epoch"):
        value = fields.get(key, 0)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_NUMBER:
            raise ProtocolError(f"not a position in the log: {shown}; its {key} is a number from 0 on")
    begin = fields.get("transaction")
    if begin is not None and not (isinstance(begin, int) and 0 <= begin <= fields.get("offset", 0)):
        raise ProtocolError(f"not a position of the log: {shown}; its transaction begins at or before its offset")
    try:
        return Position.from_json(fields)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ProtocolError(f"not a position in the log: {shown}") from None


def check_size(raw: bytes) -> None:
    """Raise ProtocolError for a request that is too large."""
    if len(raw) > MAX_REQUEST_BYTES:
        raise ProtocolError(
            f"a request has {MAX_REQUEST_BYTES} bytes at most, not {len(raw)}: choose tables by a filter"
        )


def read_json(raw: bytes) -> dict[str, Any]:
    """Parse the bytes of a request as a JSON object. Raises ProtocolError."""
    check_size(raw)
    try:
        value = json.loads(raw or b"{}")
    except (ValueError, RecursionError):
        raise ProtocolError("the request is not JSON") from None
    if not isinstance(value, dict):
        raise ProtocolError("the request is not a JSON object")
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        raise ProtocolError("the request has texts that are no Unicode") from None
    return cast("dict[str, Any]", value)


def read_text(arguments: Mapping[str, Any], key: str, default: str | None = None) -> str:
    """Return a text argument. Raises ProtocolError when it is missing without a default, or no text."""
    value = arguments.get(key, default)
    if not isinstance(value, str):
        raise ProtocolError(f"{key} is a text" if key in arguments else f"{key} is missing")
    return value


def read_texts(arguments: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return an argument that is a text or a list of texts. Raises ProtocolError for anything else."""
    value = arguments.get(key, [])
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not all(isinstance(text, str) for text in cast("list[object]", value)):
        raise ProtocolError(f"{key} is a list of texts")
    texts = tuple(cast("list[str]", value))
    if len(texts) > MAX_NAMES:
        raise ProtocolError(f"{key} has {MAX_NAMES} names at most, not {len(texts)}: choose tables by a filter")
    return texts


def read_number(arguments: Mapping[str, Any], key: str, default: int | None = None, *, least: int = 0) -> int:
    """Return a whole number argument that is at least `least`. Raises ProtocolError for anything else."""
    value = arguments.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ProtocolError(f"{key} is a number" if key in arguments else f"{key} is missing")
    if not least <= value <= _MAX_NUMBER:
        raise ProtocolError(f"{key} is a number from {least} to {_MAX_NUMBER}")
    return value


def read_chunk(value: Any) -> ChunkBounds:
    """Return the limits of a chunk from JSON: [after, until], each a list of texts or null. Raises ProtocolError."""
    if isinstance(value, list) and len(limits := cast("list[Any]", value)) == 2:
        return read_key(limits[0]), read_key(limits[1])
    raise ProtocolError("a chunk is [after, until]")


def read_key(value: Any) -> tuple[str, ...] | None:
    """Return a key from JSON: a list of texts, one for each of its columns, or null. Raises ProtocolError."""
    if value is None:
        return None
    if isinstance(value, list) and value and all(isinstance(text, str) for text in cast("list[Any]", value)):
        return tuple(cast("list[str]", value))
    raise ProtocolError("a key is a list of texts, one for each of its columns")


def read_client(arguments: Mapping[str, Any]) -> int:
    """Return the client id of a request, from 1 to 32767. Raises ProtocolError for anything else."""
    number = read_number(arguments, "client")
    if not 0 < number < 1 << 15:
        raise ProtocolError("client is a number from 1 to 32767")
    return number
