"""Options of `format("penstock")`. A misspelled one is an error, not a default."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.client import Address
from penstock.errors import ConfigurationError
from penstock.model import Position, TableName

_KNOWN = {
    "server": "HOST:PORT of a Penstock server, or grpc+tls://HOST:PORT",
    "token": "that the server lets you in with",
    "tlsCa": "file with certificates to trust, on the driver and every executor; makes the connection TLS",
    "destination": "instance on that server, `default` when not given",
    "table": "one table, database.table",
    "tables": "several tables, separated by commas; each becomes one struct column",
    "columns": "columns to read, separated by commas; with `tables` each as table.column",
    "partialJson": "`error` (default) or `operations`: a change to a JSON document that the log does not have",
    "startingPosition": "`latest` (default), `earliest`, or FILE:OFFSET at a transaction boundary",
    "maxBytesPerTrigger": "about how much log one batch reads, 67108864 when not given",
    "pollMs": "how long to wait for news inside latestOffset, 50 when not given",
}
_SPARKS_OWN = {"path"}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    server: Address
    destination: str
    tables: tuple[TableName, ...]
    is_flat: bool  # one table, its columns at the top
    columns: tuple[str, ...]
    partial_json: Literal["error", "operations"]
    starting_position: str
    max_bytes: int
    poll_ms: int

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "ReadOptions":
        given = {key.lower(): value for key, value in options.items()}
        unknown = given.keys() - {key.lower() for key in _KNOWN} - _SPARKS_OWN
        if unknown:
            known = "; ".join(f"{key}: {what}" for key, what in _KNOWN.items())
            raise ConfigurationError(f"unknown option {', '.join(sorted(unknown))}; there are {known}")
        if "server" not in given:
            raise ConfigurationError("the option `server` is missing, for example 127.0.0.1:11115")
        if ("table" in given) == ("tables" in given):
            raise ConfigurationError("give either the option `table` or the option `tables`")
        is_flat = "table" in given
        names = [given["table"]] if is_flat else given["tables"].split(",")
        starting = given.get("startingposition", "latest")
        if starting not in ("latest", "earliest"):
            Position.parse(starting)
        return cls(
            server=Address(given["server"], given.get("token", ""), given.get("tlsca", "")),
            destination=given.get("destination", "default"),
            tables=tuple(TableName.parse(name) for name in names),
            is_flat=is_flat,
            columns=tuple(name.strip() for name in given.get("columns", "").split(",") if name.strip()),
            partial_json=_partial_json(given.get("partialjson", "error")),
            starting_position=starting,
            max_bytes=_number(given, "maxBytesPerTrigger", 64 << 20),
            poll_ms=_number(given, "pollMs", 50),
        )

    def struct_names(self) -> dict[TableName, str]:
        return struct_names(self.tables)

    def columns_of(self, table: TableName) -> list[str] | None:
        """Chosen columns of a table, or None for all."""
        if not self.columns:
            return None
        if self.is_flat:
            return list(self.columns)
        prefix = f"{self.struct_names()[table]}."
        return [name.removeprefix(prefix) for name in self.columns if name.startswith(prefix)]


def struct_names(tables: Sequence[TableName]) -> dict[TableName, str]:
    """Name of each table's struct column: the table's own, with its database where two are alike."""
    names = [table.table for table in tables]
    return {
        table: table.table if names.count(table.table) == 1 else f"{table.schema}_{table.table}" for table in tables
    }


def _partial_json(text: str) -> Literal["error", "operations"]:
    if text == "error" or text == "operations":  # noqa: PLR1714 - so that the type is known
        return text
    raise ConfigurationError(f"the option partialJson is error or operations, not {text!r}")


def _number(given: Mapping[str, str], name: str, default: int) -> int:
    text = given.get(name.lower(), str(default))
    if not text.isdigit() or int(text) < 1:
        raise ConfigurationError(f"the option {name} must be a positive whole number, not {text!r}")
    return int(text)
