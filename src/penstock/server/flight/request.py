"""What a ticket, a descriptor or an action asks for: a JSON object; of a ticket also just the name of a table."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, cast

from penstock.errors import ConfigurationError, PenstockError, ProtocolError
from penstock.instance import Instance
from penstock.instance.filter import table_filter
from penstock.model import GtidSet, Position, TableName
from penstock.model.start_point import Moment, StartWord, parse_start
from penstock.store import Start
from penstock.store.client import TableFilter

LONGEST_BYTES = 1 << 20  # of a ticket, a descriptor or an action
MOST_NAMES = 4096  # of tables or columns in one request; a server's table has no more columns
_LARGEST = (1 << 63) - 1
_KEYS = {"destination", "tables", "filter", "columns", "form", "start", "end", "client"}


@dataclass(frozen=True, slots=True)
class FlightRequest:
    """Without an end it goes on for ever; with a client it is what that client has subscribed to."""

    destination: str
    tables: tuple[TableName, ...] = ()
    filter: str = ""
    columns: tuple[str, ...] = ()
    form: Literal["decoded", "raw"] = "decoded"
    start: Any = "latest"
    end: Any = None
    client: int | None = None

    @classmethod
    def of_ticket(cls, raw: bytes) -> "FlightRequest":
        check_size(raw)
        text = raw.strip()
        if text.startswith(b"{"):
            return cls.of(read_json(raw))
        try:
            destination, _, table = text.decode().rpartition("/")
            return cls(destination or "default", (TableName.parse(table),))
        except (UnicodeDecodeError, PenstockError):
            raise ProtocolError("a ticket is JSON, or the name of a table such as shop.products") from None

    @classmethod
    def of_path(cls, path: list[bytes]) -> "FlightRequest":
        """destination, or destination and table, as list_flights has them."""
        texts = [part.decode(errors="replace") for part in path]
        match texts:
            case [destination]:
                return cls(destination, form="raw")
            case [destination, table]:
                return cls(destination, (TableName.parse(table),))
            case _:
                raise ProtocolError("a path is a destination, and maybe one of its tables")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "FlightRequest":
        if unknown := given.keys() - _KEYS:
            raise ProtocolError(
                f"nobody knows what {', '.join(sorted(unknown))} is; there is {', '.join(sorted(_KEYS))}"
            )
        tables, form, client = texts_of(given, "tables"), given.get("form", "decoded"), given.get("client")
        if form not in ("decoded", "raw"):
            raise ProtocolError(f"the form is decoded or raw, not {form!r}")
        if client is not None and ("start" in given or given.get("end") is not None):
            raise ProtocolError("a client goes on from its cursor: it has no start and no end")
        wanted = text_of(given, "filter", "")
        if tables and wanted:
            raise ProtocolError("say either tables or a filter")
        columns = texts_of(given, "columns")
        if columns and (len(tables) != 1 or form == "raw"):
            raise ProtocolError("columns are chosen of one table, decoded")
        table_filter(wanted)  # refuses what is none
        for key in ("start", "end"):
            if isinstance(given.get(key), dict):
                _position_of(given[key])
        return cls(
            text_of(given, "destination", "default"),
            tuple(TableName.parse(name) for name in tables),
            wanted,
            columns,
            form,
            given.get("start", "latest"),
            given.get("end"),
            None if client is None else client_of(given),
        )

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"destination": self.destination, "form": self.form}
        if self.tables:
            found["tables"] = [str(table) for table in self.tables]
        if self.client is not None:
            return found | {"client": self.client}
        more = {"filter": self.filter, "columns": list(self.columns), "start": self.start, "end": self.end}
        return found | {key: value for key, value in more.items() if value}

    @property
    def wanted(self) -> TableFilter | None:
        """None for all tables."""
        return frozenset(self.tables).__contains__ if self.tables else table_filter(self.filter)

    def starts(self, instance: Instance) -> Start:
        return start_of(self.start, instance)

    def bounds(self, instance: Instance) -> tuple[Position, Position]:
        """Of a range."""
        start, end = (_found(start_of(one, instance), instance) for one in (self.start, self.end))
        if end < start:
            raise ProtocolError(f"{end} is before {start}")
        return start, end


def start_of(given: Any, instance: Instance) -> Start:  # noqa: PLR0911 - one for each way to write it
    """Return where a client begins, from a text in the grammar of `parse_start` or what a stream has said."""
    if not isinstance(given, str):
        return Start.cursor(place_of(given, instance))
    try:
        point = parse_start(given, datetime.now(UTC))
    except ConfigurationError as error:
        raise ProtocolError(str(error)) from None
    match point:
        case StartWord.LATEST:
            return Start.latest()
        case StartWord.STORED:
            return Start.first()
        case StartWord.EARLIEST:
            return Start.cursor(instance.oldest())
        case Moment(us):
            return Start.at_time(us)
        case Position():
            return Start.cursor(replace(point, epoch=instance.source_log.epoch))
        case GtidSet():
            return _after_gtids(point, instance)


def _after_gtids(gtids: GtidSet, instance: Instance) -> Start:
    if gtids.is_single:
        return Start.after_gtid(gtids.text)
    resolver = instance.source_log.resolver
    resolver.check_was_executed(gtids)
    return Start.cursor(resolver.find_after_gtids(gtids))


def _found(start: Start, instance: Instance) -> Position:
    """Where in the log that is."""
    match start.kind:
        case "latest":
            return instance.store.latest
        case "first":
            return instance.store.first
        case _:
            return start.position or instance.source_log.find(start)


def place_of(given: Any, instance: Instance) -> Position:
    """FILE:OFFSET in the log that there is, or what a stream has said."""
    if isinstance(given, str):
        return Position.parse(given, instance.source_log.epoch)
    if not isinstance(given, dict):
        raise ProtocolError(f"no place in the log: {json.dumps(given)[:200]}")
    return _position_of(cast("dict[str, Any]", given))


def _position_of(known: dict[str, Any]) -> Position:
    """A position as a stream has said it: {epoch, file, offset, gtids}."""
    shown = json.dumps(known)[:200]
    for key in ("offset", "epoch"):
        value = known.get(key, 0)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
            raise ProtocolError(f"no place in the log: {shown}; its {key} is a number from 0 on")
    begin = known.get("transaction")
    if begin is not None and not (isinstance(begin, int) and 0 <= begin <= known.get("offset", 0)):
        raise ProtocolError(f"not a position of the log: {shown}; its transaction begins at or before its offset")
    try:
        return Position.from_json(known)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ProtocolError(f"no place in the log: {shown}") from None


def check_size(raw: bytes) -> None:
    if len(raw) > LONGEST_BYTES:
        raise ProtocolError(f"a request has {LONGEST_BYTES} bytes at most, not {len(raw)}: choose tables by a filter")


def read_json(raw: bytes) -> dict[str, Any]:
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


def text_of(given: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = given.get(key, default)
    if not isinstance(value, str):
        raise ProtocolError(f"{key} is a text" if key in given else f"{key} is missing")
    return value


def texts_of(given: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = given.get(key, [])
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not all(isinstance(one, str) for one in cast("list[object]", value)):
        raise ProtocolError(f"{key} is a list of texts")
    texts = tuple(cast("list[str]", value))
    if len(texts) > MOST_NAMES:
        raise ProtocolError(f"{key} has {MOST_NAMES} names at most, not {len(texts)}: choose tables by a filter")
    return texts


def number_of(given: Mapping[str, Any], key: str, default: int | None = None, *, least: int = 0) -> int:
    value = given.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ProtocolError(f"{key} is a number" if key in given else f"{key} is missing")
    if not least <= value <= _LARGEST:
        raise ProtocolError(f"{key} is a number from {least} to {_LARGEST}")
    return value


def client_of(given: Mapping[str, Any]) -> int:
    number = number_of(given, "client")
    if not 0 < number < 1 << 15:
        raise ProtocolError("client is a number from 1 to 32767")
    return number
