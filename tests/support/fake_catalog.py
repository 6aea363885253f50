"""A cursor of a database that has a catalogue and no rows: for what is checked before any row is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_TYPES = {
    "int": ("int", "int(11)", "YES", 10, 0, None, None, None),
    "text": ("varchar", "varchar(80)", "YES", None, None, None, "utf8mb4", 320),
    "decimal": ("decimal", "decimal(10,2)", "YES", 10, 2, None, None, None),
    "datetime": ("datetime", "datetime", "YES", None, None, 0, None, None),
}
_PLAN = ("id", "select_type", "table", "type", "possible_keys", "key", "key_len", "ref", "rows", "Extra")


@dataclass
class FakeTable:
    """A table of the catalogue: the first column is the primary key, unless another one is named."""

    columns: Mapping[str, str]  # names with keys of _TYPES
    key: Sequence[str] = ()
    indexes: Sequence[Sequence[str]] = ()
    foreign_keys: str = ""  # lines of SHOW CREATE TABLE

    @property
    def primary_key(self) -> list[str]:
        return list(self.key or list(self.columns)[:1])


class FakeSqlError(Exception):
    """An error of a server: its code and its text."""


@dataclass
class FakeCatalog:
    """Answers the questions of read_live_schema, load_graph and EXPLAIN.

    cursor = FakeCatalog({"shop.store": FakeTable({"id": "int", "city": "text"})})
    """

    tables: Mapping[str, FakeTable]
    errors: Mapping[str, FakeSqlError] = field(default_factory=dict[str, FakeSqlError])  # by a part of the SQL
    full_scans: Sequence[str] = ()  # parts of SQL for which EXPLAIN shows one
    statements: list[str] = field(default_factory=list[str])
    description: Any = ()
    _rows: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])

    def execute(self, sql: str, parameters: Sequence[str] = ()) -> None:
        self.statements.append(sql)
        for part, error in self.errors.items():
            if part in sql:
                raise error
        self.description = (("value", 253),)
        if sql.startswith("EXPLAIN "):
            self._explain(sql)
        elif sql.startswith("SHOW CREATE TABLE "):
            self._rows = [("", self._table(sql.removeprefix("SHOW CREATE TABLE ").replace("`", "")).foreign_keys)]
        elif "information_schema" in sql:
            self._rows = self._catalogue(sql, parameters)
        elif "lower_case_table_names" in sql:
            self._rows = [(0,)]
        else:
            self._rows = []

    def fetchone(self) -> tuple[Any, ...] | None:
        return self._rows[0] if self._rows else None

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows

    def _table(self, name: str) -> FakeTable:
        return self.tables.get(name) or FakeTable({})

    def _catalogue(self, sql: str, parameters: Sequence[str]) -> list[tuple[Any, ...]]:
        table = self._table(".".join(parameters))
        if "COUNT(" in sql:
            return [(0,)]
        if "information_schema.columns" in sql:
            is_generated = "generation_expression" in sql  # none is
            return [] if is_generated else [(name, *_TYPES[kind]) for name, kind in table.columns.items()]
        if "information_schema.key_column_usage" in sql:
            return [(name,) for name in (table.primary_key if table.columns else [])]
        if "information_schema.tables" in sql:
            return [(*name.split("."),) for name in self.tables]
        keys = {"PRIMARY": table.primary_key} if table.columns else {}
        if "non_unique = 0" in sql:
            return [(index, column, None) for index, columns in keys.items() for column in columns]
        keys |= {f"index{number}": list(columns) for number, columns in enumerate(table.indexes)}
        return [(index, column) for index, columns in keys.items() for column in columns]

    def _explain(self, sql: str) -> None:
        self.description = tuple((name, 253) for name in _PLAN)
        alias = "n1" if " AS n1" in sql else "c"
        is_slow = any(part in sql for part in self.full_scans)
        access, key, rows = ("ALL", None, 90_000) if is_slow else ("ref", "PRIMARY", 1)
        self._rows = [(1, "SIMPLE", alias, access, None, key, None, None, rows, "")]
