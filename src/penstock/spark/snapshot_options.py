"""Options of `format("penstock_snapshot")`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from penstock.binlog.values.column import DecodeOptions
from penstock.config import SourceSettings
from penstock.errors import ConfigurationError
from penstock.model import TableName
from penstock.snapshot.chunks import ChunkSize
from penstock.spark.option_values import Option, check_known, read_choice, read_flag, read_number

_CONNECTIONS_WITH_RATE = 4  # that share the rows per second, unless the user says how many
_TLS = ("preferred", "disabled", "required", "verify-ca", "verify-identity")
SNAPSHOT_OPTIONS = (
    Option("host", "", "the database server; every executor connects to it"),
    Option("port", "3306", "port of the database server"),
    Option("user", "root", "database user with SELECT, REPLICATION SLAVE and REPLICATION CLIENT"),
    Option("password", "", "password of the user; Spark redacts it"),
    Option("tls", "preferred", "`disabled`, `preferred`, `required`, `verify-ca` or `verify-identity`"),
    Option(
        "tlsCa",
        "",
        "CA certificates that the certificate of the database server is checked against, a PEM file that the driver"
        " and every executor can read",
    ),
    Option("table", "", "the table, `database.table`"),
    Option("columns", "all", "columns to read, separated by commas"),
    Option(
        "chunkRows",
        "100000",
        "maximum number of rows of a chunk (key range), by the server's estimate; each chunk is one consistent read",
    ),
    Option("chunkBytes", "33554432", "maximum size of a chunk in bytes, by the server's estimate"),
    Option(
        "maxConnections",
        "no limit",
        "maximum number of connections to the database; by default one per running task, or 4 with `maxRowsPerSecond`",
    ),
    Option(
        "maxViewAge",
        "60",
        "maximum number of seconds that one consistent read (read view) is open; a chunk that takes longer is split",
    ),
    Option(
        "maxRowsPerSecond",
        "no limit",
        "maximum number of rows read per second, by all tasks together; each of `maxConnections` tasks has an equal"
        " share, so the query needs as many cores to reach it",
    ),
    Option(
        "dates",
        "null",
        "what to do with invalid dates such as 2024-02-30: `null`, `error`, or `text`, which makes the whole column"
        " text",
        "batch",
    ),
    Option(
        "includePosition",
        "false",
        "adds `_low_file`, `_low_offset`, `_high_file`, `_high_offset`: the binlog positions that the read of the row"
        " lies between",
    ),
)


@dataclass(frozen=True, slots=True)
class SnapshotReadOptions:
    """The options of a snapshot: the table, the source, and the limits on the load that it may cause.

    >>> SnapshotReadOptions.of({"host": "db1", "table": "shop.orders"})
    """

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    tls: str
    tls_ca: str
    table: TableName
    columns: tuple[str, ...] | None
    chunk: ChunkSize
    max_connections: int | None
    max_rows_per_s: int | None
    max_view_age_s: int
    dates: Literal["null", "error", "text"]
    includes_position: bool

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "SnapshotReadOptions":
        """Return the options as Spark gives them, checked; raise ConfigurationError for what makes no sense."""
        given = {key.lower(): value for key, value in options.items()}
        check_known(given, SNAPSHOT_OPTIONS)
        for name in ("host", "table"):
            if not given.get(name):
                raise ConfigurationError(f"the option `{name}` is missing: give the database server and a table")
        tls, tls_ca = read_choice(given, "tls", _TLS), given.get("tlsca", "")
        if tls_ca and not tls.startswith("verify"):
            raise ConfigurationError("the option tlsCa goes with tls verify-ca or verify-identity")
        columns = tuple(name.strip() for name in given.get("columns", "").split(",") if name.strip())
        return cls(
            host=given["host"],
            port=read_number(given, "port", 3306, most=65535),
            user=given.get("user") or "root",
            password=given.get("password", ""),
            tls=tls,
            tls_ca=tls_ca,
            table=TableName.parse(given["table"]),
            columns=columns or None,
            chunk=ChunkSize(read_number(given, "chunkRows", 100_000), read_number(given, "chunkBytes", 32 << 20)),
            max_connections=read_number(given, "maxConnections", 0) or None,
            max_rows_per_s=read_number(given, "maxRowsPerSecond", 0) or None,
            max_view_age_s=read_number(given, "maxViewAge", 60),
            dates=cast('Literal["null", "error", "text"]', read_choice(given, "dates", ("null", "error", "text"))),
            includes_position=read_flag(given, "includePosition"),
        )

    @property
    def source(self) -> SourceSettings:
        """Return the settings of the database server."""
        settings = {"host": self.host, "port": self.port, "user": self.user, "password": self.password, "tls": self.tls}
        return SourceSettings.model_validate(settings | ({"tls_ca": self.tls_ca} if self.tls_ca else {}))

    @property
    def most_connections(self) -> int | None:
        """Return how many connections there are at most; None for no limit. With a limit on rows per second there is
        one, because each connection gets its share of them, also while its task waits for a core."""
        return self.max_connections or (None if self.max_rows_per_s is None else _CONNECTIONS_WITH_RATE)

    @property
    def decode(self) -> DecodeOptions:
        """Return how values are decoded."""
        return DecodeOptions(dates=self.dates)


def snapshot_options_table() -> str:
    """Return the options as the Markdown table that the documentation has."""
    lines = [f"| `{option.name}` | {option.default} | {option.meaning} |" for option in SNAPSHOT_OPTIONS]
    return "\n".join(["| option | default | meaning |", "|---|---|---|", *lines]) + "\n"
