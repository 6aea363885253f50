"""Every column type of every server as canal's Java client gets it, beside what a SELECT shows."""

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import pytest

from penstock.testing import DatabaseServer
from tests.integration.types.column import Column, Kind, Table
from tests.integration.types.expectation import readable
from tests.integration.types.setting import FACTS, every_setting
from tests.integration.types.workload import Image, Recorder, Shown
from tests.services.canal_client import Driver
from tests.support.canal_port import connect, listening
from tests.support.capture import poll
from tests.twins.canal import canal_decimal, java_real

_TYPES = {
    Kind.DECIMAL: 3, Kind.FLOAT: 7, Kind.DOUBLE: 8, Kind.BIT: -7, Kind.YEAR: 12, Kind.DATE: 91, Kind.TIME: 92,
    Kind.DATETIME: 93, Kind.TIMESTAMP: 93, Kind.BYTES: 2004, Kind.BINARY: 2004, Kind.GEOMETRY: 2004, Kind.ENUM: 4,
    Kind.SET: -7, Kind.JSON: 12,
}  # fmt: skip
_INTEGERS = {8: -6, 16: 5, 24: 4, 32: 4, 64: -5}
_WIDER = {8: 5, 16: 4, 24: 4, 32: -5, 64: 3}
_OF_NULL = {Kind.SET: 2004, Kind.JSON: 1111}


def text_of(column: Column, shown: Shown) -> str | None:  # noqa: PLR0911 - one per kind
    first, last = shown[0], shown[-1]
    if first is None or last is None:
        return None
    match column.kind:
        case Kind.INTEGER:
            return str(int(first))
        case Kind.DECIMAL:
            return canal_decimal(Decimal(first), column.scale)
        case Kind.FLOAT | Kind.DOUBLE:
            return java_real(float(first), is_float=column.kind is Kind.FLOAT)
        case Kind.TEXT:
            return readable(bytes.fromhex(last).decode(), bytes.fromhex(first))
        case Kind.JSON:
            return bytes.fromhex(last).decode()
        case Kind.BYTES | Kind.GEOMETRY:
            return bytes.fromhex(first).decode("latin-1")
        case Kind.BINARY:
            return bytes.fromhex(first).rstrip(b"\0").decode("latin-1")
        case Kind.ADDRESS:
            return last
        case _:
            return first


def type_of(column: Column, text: str | None) -> int | None:
    """None where it depends on how the column was declared."""
    if text is None and column.kind in _OF_NULL:
        return _OF_NULL[column.kind]
    if column.kind is Kind.INTEGER:
        is_wide = column.unsigned and text is not None and int(text) >= 1 << column.size - 1
        return (_WIDER if is_wide else _INTEGERS)[column.size]
    return _TYPES.get(column.kind)


def images_of(row: Any, kind: str) -> Iterator[list[Any]]:
    if kind != "INSERT":
        yield row["before"]
    if kind != "DELETE":
        yield row["after"]


def differences(table: Table, rows: Sequence[list[Any]], expected: Sequence[Image]) -> Iterator[str]:
    columns = {column.name: (index, column) for index, column in enumerate(table.all_columns)}
    for number, (image, wanted) in enumerate(zip(rows, expected, strict=True)):
        for cell in image:
            if cell["name"] not in columns:
                continue
            index, column = columns[cell["name"]]
            text, where = text_of(column, wanted.row[index]), f"{table.name}.{column.name} {number}"
            if column.kind is not Kind.VECTOR and (None if cell["isNull"] else cell["value"]) != text:
                yield f"{where}: {cell['value']!r}, not {text!r}"
            kind = type_of(column, text)
            if kind is not None and cell["sqlType"] != kind:
                yield f"{where}: type {cell['sqlType']}, not {kind}"


@pytest.mark.canal_java
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in FACTS])
def test_the_java_client_gets_what_a_select_shows(
    name: str, request: pytest.FixtureRequest, recorder_of: Callable[[str], Recorder], java: Driver
) -> None:
    server: DatabaseServer = request.getfixturevalue(name)
    recorder = recorder_of(name)
    with listening(server) as port:
        connect(java, port.port, f"{recorder.database}\\..*")
        log = recorder.record(every_setting(name)[0])
        wanted = {table: len(images) for table, images in log.images.items()}
        rows: dict[str, list[list[Any]]] = {table: [] for table in wanted}

        def is_all() -> bool:
            message = java.ask("getWithoutAck", 2000)
            for entry in message["entries"]:
                if entry["table"] in rows and not entry["change"]["isDdl"]:
                    for row in entry["change"]["rows"]:
                        rows[entry["table"]] += images_of(row, entry["eventType"])
            java.ask("ack", message["id"])
            return all(len(rows[table]) >= count for table, count in wanted.items())

        assert poll(is_all, 200), {table: (len(rows[table]), count) for table, count in wanted.items()}
    shown = [line for table in log.tables for line in differences(table, rows[table.name], log.images[table.name])]
    assert not shown, f"{len(shown)}\n" + "\n".join(shown[:40])
