"""Foreign keys by which the server changes rows without writing them to its log.

They are read from SHOW CREATE TABLE: information_schema shows them only to accounts that may change the table.
"""

import re
from dataclasses import dataclass
from typing import Any

from penstock.model import TableName

_NAME = r"`((?:[^`]|``)+)`"
_FOREIGN_KEY = re.compile(
    rf"FOREIGN KEY \((?P<columns>[^)]*)\) REFERENCES (?:{_NAME}\.)?{_NAME} \((?P<parent_columns>[^)]*)\)"
    r"(?P<rules>[^,\n]*)"
)
_ACTIONS = ("CASCADE", "SET NULL", "SET DEFAULT")


@dataclass(frozen=True, slots=True)
class CascadingKey:
    """A foreign key whose rows follow their parent: deleted, set to NULL or updated with it, and not logged."""

    table: TableName
    columns: tuple[str, ...]
    parent: TableName
    parent_columns: tuple[str, ...]
    follows_deletes: bool
    follows_updates: bool


def read_cascading_keys(cursor: Any, table: TableName) -> list[CascadingKey]:
    """Return the foreign keys of a table by which its rows change when a row of the parent does."""
    cursor.execute(f"SHOW CREATE TABLE {_quote(table.schema)}.{_quote(table.table)}")
    row = cursor.fetchone()
    text = row[1].decode() if isinstance(row[1], bytes) else str(row[1])
    return parse_cascading_keys(text, table)


def parse_cascading_keys(text: str, table: TableName) -> list[CascadingKey]:
    """Return the cascading foreign keys in the text of SHOW CREATE TABLE."""
    keys: list[CascadingKey] = []
    for match in _FOREIGN_KEY.finditer(text):
        rules = match["rules"].upper()
        deletes, updates = (any(f"{event} {action}" in rules for action in _ACTIONS) for event in _EVENTS)
        if deletes or updates:
            schema, parent = (_unquote(name) if name else table.schema for name in match.group(2, 3))
            keys.append(
                CascadingKey(
                    table,
                    _names(match["columns"]),
                    TableName(schema, parent),
                    _names(match["parent_columns"]),
                    deletes,
                    updates,
                )
            )
    return keys


_EVENTS = ("ON DELETE", "ON UPDATE")


def _names(text: str) -> tuple[str, ...]:
    """Return a list of quoted names."""
    return tuple(_unquote(name) for name in re.findall(_NAME, text))


def _unquote(name: str) -> str:
    """Return a name without the doubled backquotes of its quoted form."""
    return name.replace("``", "`")


def _quote(name: str) -> str:
    """Return a name in backquotes."""
    return "`" + name.replace("`", "``") + "`"
