"""Rows of a database as parts of documents: names become paths, values become what JSON has for them."""

import base64
import json
from datetime import date
from decimal import Decimal
from typing import Any

from pymysql.constants import FIELD_TYPE
from pymysql.converters import conversions

from penstock.testing import DatabaseServer

Document = dict[str, Any]
_WITH_CLOCK = {FIELD_TYPE.DATETIME: "", FIELD_TYPE.TIMESTAMP: "Z"}
_AS_TEXT = {FIELD_TYPE.DATE, FIELD_TYPE.NEWDATE, *_WITH_CLOCK}
_DATE_CHARACTERS = 10


class RowSource:
    """Reads one consistent state of a database."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._cursor = connection.cursor()

    @classmethod
    def connect(cls, server: DatabaseServer, database: str) -> "RowSource":
        """Open a snapshot, in UTC, in which dates stay texts."""
        converted = {code: convert for code, convert in conversions.items() if code not in _AS_TEXT}
        source = cls(server.connect(charset="utf8mb4", autocommit=False, database=database, conv=converted))
        source._cursor.execute("SET SESSION time_zone = '+00:00', sql_mode = ''")
        source._cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        return source

    def close(self) -> None:
        """End the snapshot."""
        self._connection.close()

    def documents(self, sql: str) -> list[Document]:
        """Return the rows of a query as nested objects."""
        self._cursor.execute(sql)
        columns = [(str(column[0]), int(column[1])) for column in self._cursor.description]
        return [_nest(columns, row) for row in self._cursor.fetchall()]


def _nest(columns: list[tuple[str, int]], row: tuple[Any, ...]) -> Document:
    """Return a row as nested objects; see the oracle for what names mean."""
    document: Document = {}
    absent: list[str] = []
    for (name, code), value in zip(columns, row, strict=True):
        path, _, kind = name.partition("!")
        *parents, last = path.split(".")
        if any(path.startswith(prefix) for prefix in absent):
            continue
        inner = document
        for parent in parents[:-1] if last == "?" else parents:
            inner = inner[parent]
        if last != "?":
            inner[last] = _to_json(value, code, kind)
        elif value is None:
            inner[parents[-1]] = None
            absent.append(path[:-1])
        else:
            inner[parents[-1]] = {}
    return document


def _to_json(value: Any, code: int, kind: str) -> Any:  # noqa: PLR0911 - one case per type
    """Return a value as JSON has it, parsed with decimals."""
    if value is None:
        return None
    if kind:
        return bool(value) if kind == "bool" else float(value)
    if code in _AS_TEXT:
        if not _is_date(value[:_DATE_CHARACTERS]):
            return None
        return value.replace(" ", "T") + _WITH_CLOCK[code] if code in _WITH_CLOCK else value
    if code == FIELD_TYPE.JSON:
        return json.loads(value, parse_float=Decimal)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


def _is_date(text: str) -> bool:
    """Return whether a calendar has this day."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
