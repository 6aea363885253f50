"""Options of `format("penstock")`. A misspelled one is an error, not a default."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from penstock.client import EmbeddedSource, ServerAddress
from penstock.errors import ConfigurationError
from penstock.model import Position, TableName
from penstock.model.start_point import StartWord, is_fixed, parse_start
from penstock.spark.option_values import Option, check_known, read_flag, read_number

OPTIONS = (
    Option(
        "server",
        "",
        "`HOST:PORT` of the Arrow Flight port of a Penstock server, or several, separated by commas; with"
        " `grpc+tls://` in front, TLS is used",
    ),
    Option(
        "zookeeper",
        "",
        "instead of `server`: the ZooKeeper in which Penstock servers publish which of them runs the destination,"
        " `HOST:PORT,…` or with a chroot",
    ),
    Option(
        "host",
        "",
        "instead of `server`: the database server itself, which is captured on this machine without a Penstock server",
    ),
    Option("port", "3306", "with `host`: port of the database server"),
    Option("user", "root", "with `host`: database user with REPLICATION SLAVE, REPLICATION CLIENT and SELECT"),
    Option("password", "", "with `host`: password of the user; Spark redacts it"),
    Option("tls", "preferred", "with `host`: `disabled`, `preferred`, `required`, `verify-ca` or `verify-identity`"),
    Option(
        "path",
        "",
        "instead of `server`: folder with binlog files, which the driver and every executor can read; also"
        " `load(path)`",
    ),
    Option(
        "stateDir",
        "~/.local/state/penstock/embedded",
        "with `host` or `path`: folder in which the schema history of the binlog is kept from one query to the next",
    ),
    Option("token", "", "access token of the Penstock server; Spark redacts it"),
    Option(
        "tlsCa",
        "",
        "CA certificates that the certificate of the server is checked against, a PEM file that the driver and every"
        " executor can read; with a `server`, TLS is used",
    ),
    Option("destination", "default", "name of the instance (capture pipeline) on that server"),
    Option("table", "", "one table, `database.table`: its own columns"),
    Option("tables", "", "several tables, separated by commas: one struct column each"),
    Option(
        "filter",
        "",
        "all tables that match this regular expression, such as `shop\\..*`: keys as a map, rows as JSON text",
    ),
    Option("columns", "all", "columns to read, separated by commas; with `tables` each as `table.column`"),
    Option("includeDdl", "false", "with `filter`: DDL statements are delivered too, as rows of their own"),
    Option(
        "partialJson",
        "error",
        "what to do with an update of a JSON document of which the binlog has only the changed parts"
        " (binlog_row_value_options=PARTIAL_JSON): `error`, or `operations` to deliver these",
    ),
    Option(
        "startingPosition",
        "latest; batch: earliest",
        "`earliest`, `latest`, `FILE:OFFSET`, `gtid:…`, `time:…`, the JSON of an offset; of a stream of tables also"
        " `snapshot`: first the rows that the tables have, then their changes",
    ),
    Option("endingPosition", "latest", "where a batch read ends, written in the same way", "batch"),
    Option(
        "maxBytesPerTrigger", "67108864", "about how many bytes of the binlog one micro-batch reads at most", "stream"
    ),
    Option("maxRowsPerTrigger", "no limit", "maximum number of rows of one micro-batch", "stream"),
    Option(
        "waitForServer",
        "120",
        "seconds to wait for a server that starts, restarts or moves; with `host` or `path` for the start of the"
        " capture, 20 at least",
    ),
    Option(
        "pollMs",
        "500",
        "milliseconds that one request to the server waits for changes; they are delivered as soon as there are any",
        "stream",
    ),
    Option(
        "lowLatency",
        "false",
        "small micro-batches are read in the driver, by one task: about 30 ms less latency",
        "stream",
    ),
)
_KNOWN = {option.name.lower(): option.name for option in OPTIONS}
_ORIGINS = ("server", "zookeeper", "host", "path")
_TLS = ("disabled", "preferred", "required", "verify-ca", "verify-identity")
# Options that say something only of one way to the log.
_GOES_WITH = {
    "token": ("server", "zookeeper"),
    "destination": ("server", "zookeeper"),
    "tlsca": ("server", "zookeeper", "host"),
    "port": ("host",),
    "user": ("host",),
    "password": ("host",),
    "tls": ("host",),
    "statedir": ("host", "path"),
}
_MOST_WAIT_S = 24 * 3600
SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a query: tables, server and destination, start, and the limits of a micro-batch.

    >>> ReadOptions.of({"server": "127.0.0.1:11115", "table": "shop.orders"})
    """

    server: ServerAddress | EmbeddedSource
    destination: str
    tables: tuple[TableName, ...]
    filter: str  # instead of tables
    is_flat: bool  # one table, its columns at the top
    columns: tuple[str, ...]
    includes_ddl: bool
    partial_json: Literal["error", "operations"]
    starting_position: str | None
    ending_position: str | None
    max_bytes: int
    max_rows: int | None
    wait_s: float
    poll_ms: int
    is_low_latency: bool

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "ReadOptions":
        """Return the options as Spark gives them, checked; raise ConfigurationError for what makes no sense."""
        given = {key.lower(): value for key, value in options.items()}
        check_known(given, OPTIONS)
        server = _server(given)
        if sum(bool(given.get(name)) for name in ("table", "tables", "filter")) != 1:
            raise ConfigurationError("give one of the options `table`, `tables` and `filter`")
        has_filter = bool(given.get("filter"))
        columns = tuple(name.strip() for name in given.get("columns", "").split(",") if name.strip())
        if has_filter and columns:
            raise ConfigurationError("`columns` are chosen of a `table` or of `tables`, not of a `filter`")
        if has_filter and given.get("startingposition", "").strip() == SNAPSHOT:
            raise ConfigurationError("startingPosition=snapshot goes with `table` or `tables`, not with a `filter`")
        includes_ddl = read_flag(given, "includeDdl")
        if includes_ddl and not has_filter:
            raise ConfigurationError("`includeDdl` goes with a `filter`: rows of a table have no column for statements")
        names = [] if has_filter else [given["table"]] if given.get("table") else given["tables"].split(",")
        tables = tuple(TableName.parse(name) for name in names)
        _check_columns(columns, tables, is_flat=bool(given.get("table")))
        return cls(
            server=server,
            destination=given.get("destination") or "default",
            tables=tables,
            filter=given.get("filter", ""),
            is_flat=bool(given.get("table")),
            columns=columns,
            includes_ddl=includes_ddl,
            partial_json=_partial_json(given.get("partialjson", "error")),
            starting_position=_position(given, "startingPosition"),
            ending_position=_position(given, "endingPosition"),
            max_bytes=read_number(given, "maxBytesPerTrigger", 64 << 20),
            max_rows=read_number(given, "maxRowsPerTrigger", 0) or None,
            wait_s=float(read_number(given, "waitForServer", 120, least=0, most=_MOST_WAIT_S)),
            poll_ms=read_number(given, "pollMs", 500),
            is_low_latency=read_flag(given, "lowLatency"),
        )

    @property
    def starts_elsewhere_each_time(self) -> bool:
        """Return whether the start of a stream means another position each time that it is asked for."""
        start = self.starting_position or "latest"
        if start == SNAPSHOT:
            return True
        if start == "earliest" or start.startswith("{"):
            return False
        return not is_fixed(start)

    @property
    def begins_with_snapshot(self) -> bool:
        """Return whether the rows of the tables are delivered before their changes."""
        return self.starting_position == SNAPSHOT

    @property
    def limit(self) -> dict[str, Any]:
        """The limit of a batch beside its bytes, and the tables that it counts, as a server takes them."""
        rows = {} if self.max_rows is None else {"max_rows": self.max_rows, "rows_per_update": 1 if self.filter else 2}
        counted = {"filter": self.filter} if self.filter else {"tables": [str(table) for table in self.tables]}
        return rows | counted | ({"statements": True} if self.includes_ddl else {})

    def struct_names(self) -> dict[TableName, str]:
        """Return the name of each table's struct column."""
        return struct_names(self.tables)

    def columns_of(self, table: TableName) -> list[str] | None:
        """Return the chosen columns of a table, or None for all."""
        if not self.columns:
            return None
        if self.is_flat:
            return list(self.columns)
        prefix = f"{self.struct_names()[table]}."
        return [name.removeprefix(prefix) for name in self.columns if name.startswith(prefix)]


def struct_names(tables: Sequence[TableName]) -> dict[TableName, str]:
    """Return the name of each table's struct column: the table's own, with its database where two are alike."""
    names = [table.table for table in tables]
    return {
        table: table.table if names.count(table.table) == 1 else f"{table.schema}_{table.table}" for table in tables
    }


def _check_columns(columns: Sequence[str], tables: Sequence[TableName], *, is_flat: bool) -> None:
    """Raise ConfigurationError unless the chosen columns of several tables name each of them, and no other."""
    if is_flat or not tables:
        return
    names = struct_names(tables)
    if len(set(names.values())) < len(tables):
        raise ConfigurationError(f"two of the `tables` {', '.join(map(str, tables))} would have structs of one name")
    prefixes = tuple(f"{name}." for name in names.values())
    unknown = [column for column in columns if not column.startswith(prefixes)]
    if unknown:
        raise ConfigurationError(
            f"the column {unknown[0]} is of none of the `tables`: write it as {prefixes[0]}COLUMN, with one of"
            f" {', '.join(names.values())}"
        )
    without = [name for name in names.values() if not any(column.startswith(f"{name}.") for column in columns)]
    if columns and without:
        raise ConfigurationError(f"no `columns` of {without[0]} are chosen: name one, or leave it out of `tables`")


def options_table() -> str:
    """Return the options as the Markdown table that the documentation has."""
    lines = [f"| `{option.name}` | {option.default} | {option.modes} | {option.meaning} |" for option in OPTIONS]
    return "\n".join(["| option | default | for | meaning |", "|---|---|---|---|", *lines]) + "\n"


def check_mode(options: Mapping[str, str], mode: str) -> None:
    """Raise ConfigurationError for an option that means nothing for a batch read, or for a stream."""
    for option in OPTIONS:
        if mode not in option.modes and any(key.lower() == option.name.lower() for key in options):
            raise ConfigurationError(f"the option {option.name} is for a {option.modes}, not for a {mode}")


def _server(given: Mapping[str, str]) -> ServerAddress | EmbeddedSource:
    """Return where the log comes from: a server that is named or looked up, or a capture of our own."""
    origins = [name for name in _ORIGINS if given.get(name)]
    if len(origins) != 1:
        raise ConfigurationError(
            "give one of the options `server` (for example 127.0.0.1:11115), `zookeeper`, `host` (a database server,"
            f" captured without a Penstock server) and `path`; given: {', '.join(origins) or 'none of them'}"
        )
    (origin,) = origins
    for name, allowed in _GOES_WITH.items():
        if given.get(name) and origin not in allowed:
            raise ConfigurationError(f"the option {_KNOWN[name]} goes with {' or '.join(allowed)}, not with {origin}")
    if origin == "server":
        return ServerAddress(given["server"], given.get("token", ""), given.get("tlsca", ""))
    if origin == "zookeeper":
        address = ServerAddress.from_zookeeper(given["zookeeper"], given.get("token", ""), given.get("tlsca", ""))
        if not address.zookeeper:  # raises for what is none
            raise ConfigurationError("the option `zookeeper` is empty")
        return address
    if origin == "path":
        return EmbeddedSource(path=given["path"], state_dir=given.get("statedir", ""), ends_with_jvm=True)
    return _database(given)


def _database(given: Mapping[str, str]) -> EmbeddedSource:
    tls, tls_ca = given.get("tls", ""), given.get("tlsca", "")
    if tls and tls not in _TLS:
        raise ConfigurationError(f"the option tls is one of {', '.join(_TLS)}, not {tls!r}")
    if tls_ca and not tls.startswith("verify"):
        raise ConfigurationError("with `host`, the option tlsCa goes with tls verify-ca or verify-identity")
    return EmbeddedSource(
        host=given["host"],
        port=read_number(given, "port", 3306, most=65535),
        user=given.get("user") or "root",
        password=given.get("password", ""),
        tls=tls or "preferred",
        tls_ca=tls_ca,
        state_dir=given.get("statedir", ""),
        ends_with_jvm=True,
    )


def _partial_json(text: str) -> Literal["error", "operations"]:
    if text == "error" or text == "operations":  # noqa: PLR1714 - so that the type is known
        return text
    raise ConfigurationError(f"the option partialJson is error or operations, not {text!r}")


def _position(given: Mapping[str, str], name: str) -> str | None:
    """Return a position as it was written, or None; raise ConfigurationError for what is none."""
    text = (given.get(name.lower()) or "").strip()
    if not text:
        return None
    if text == SNAPSHOT and name == "startingPosition":
        return text
    try:
        if text.startswith("{"):
            Position.from_json(json.loads(text))
            return text
        point = parse_start(text, datetime.now(UTC))
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"{name}: not an offset of this source: {text[:200]} ({error!r})") from None
    except ConfigurationError as error:
        raise ConfigurationError(f"{name}: {error}; or the words earliest and latest") from None
    return point.value if isinstance(point, StartWord) else text
