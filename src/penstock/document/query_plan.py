"""What the source says about a SELECT: the server's EXPLAIN, and rows to try it with."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.binlog.values.column import Family, kernel_family_of
from penstock.document.sql_text import Key, KeyValue, quote_table, value_from_text
from penstock.model import Column, TableName
from penstock.snapshot.key_column import quote_name

_ALIASED = re.compile(r"`(?P<schema>[^`]+)`\.`(?P<table>[^`]+)` AS (?P<alias>\w+)")
_FULL_SCANS = {"ALL", "index"}
_ROWS_LOOKED_AT = 1_000  # to find one without NULL


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of the server's plan: its way to read one table of a SELECT."""

    table: str
    access: str  # as EXPLAIN says: const, eq_ref, ref, range, index, ALL
    key: str
    rows: int | None
    is_full_scan: bool
    note: str


class QueryExplainer(Protocol):
    """Explains SELECTs."""

    def find_example(self, table: TableName, columns: Sequence[Column]) -> Key | None:
        """Return the values that some row has in these columns; None when no row was found that has them all."""
        ...

    def explain(self, sql: str) -> tuple[PlanStep, ...]:
        """Return how the server would read the tables of a SELECT, in its order."""
        ...


class ServerExplainer:
    """Explains SELECTs by asking the server.

    steps = ServerExplainer(cursor).explain("SELECT …")
    """

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def find_example(self, table: TableName, columns: Sequence[Column]) -> Key | None:
        """Return the values of one of the first rows."""
        names = [quote_name(column.name) for column in columns]
        texts = ", ".join(_as_text(column) for column in columns)
        some = f"SELECT {', '.join(dict.fromkeys(names))} FROM {quote_table(table)} LIMIT {_ROWS_LOOKED_AT}"
        given = " AND ".join(f"{name} IS NOT NULL" for name in names)
        self._cursor.execute(f"SELECT {texts} FROM ({some}) AS some WHERE {given} LIMIT 1")
        row = self._cursor.fetchone()
        if row is None:
            return None
        values = (value.decode() if isinstance(value, bytes) else str(value) for value in row)
        return tuple(value_from_text(column, text) for column, text in zip(columns, values, strict=True))

    def explain(self, sql: str) -> tuple[PlanStep, ...]:
        """Return the server's EXPLAIN."""
        self._cursor.execute(f"EXPLAIN {sql}")
        names = [str(part[0]).casefold() for part in self._cursor.description]
        return tuple(read_plan_step(dict(zip(names, row, strict=True)), sql) for row in self._cursor.fetchall())


def read_plan_step(row: dict[str, Any], sql: str) -> PlanStep:
    """Return a row of EXPLAIN; aliases become the names of tables."""
    tables = {match["alias"]: f"{match['schema']}.{match['table']}" for match in _ALIASED.finditer(sql)}
    alias, access = str(row["table"] or ""), str(row["type"] or "")
    rows = row["rows"]
    return PlanStep(
        tables.get(alias, alias),
        access,
        str(row["key"] or ""),
        None if rows is None else int(rows),
        access in _FULL_SCANS,
        str(row["extra"] or ""),
    )


def any_value(column: Column) -> KeyValue:
    """Return a value of a column's type."""
    match kernel_family_of(column)[0]:
        case Family.INTEGER | Family.YEAR | Family.BIT | Family.DECIMAL:
            return 0
        case Family.BYTES:
            return b""
        case Family.DATE | Family.DATETIME | Family.TIMESTAMP:
            return "2000-01-01"
        case Family.TIME:
            return "00:00:00"
        case _:
            return ""


def _as_text(column: Column) -> str:
    """Return the SQL of a column's value as the text that a document id has for it."""
    name = quote_name(column.name)
    match kernel_family_of(column)[0]:
        case Family.BYTES:
            return f"HEX({name})"
        case Family.BIT:
            return f"CAST({name} + 0 AS CHAR)"
        case _:
            return f"CAST({name} AS CHAR)"
