"""Every column type of every server: a document that is built from the log is, byte for byte, the one that is read."""

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from penstock.document import DocumentGraph
from penstock.document.image_rules import find_read_back_reasons
from penstock.testing import DatabaseServer
from tests.integration.types.column import COUNTER, Column, Kind, Table
from tests.integration.types.setting import Setting
from tests.integration.types.workload import Log, Recorder
from tests.support.capture import execute
from tests.support.document_texts import CapturedServer, build_from_log, capture_server

_CASES = [
    ("mariadb", Setting()),
    ("mariadb", Setting(metadata="NO_LOG", compressed=True)),
    ("mariadb11", Setting()),
    ("mysql57", Setting(metadata="")),
    ("mysql80", Setting()),
    ("mysql80", Setting(metadata="MINIMAL")),
    ("mysql9", Setting(compressed=True)),
]


@pytest.mark.parametrize(("name", "setting"), _CASES, ids=str)
def test_a_document_from_the_log_is_the_one_that_is_read(
    name: str, setting: Setting, request: pytest.FixtureRequest, recorder_of: Callable[[str], Recorder]
) -> None:
    server: DatabaseServer = request.getfixturevalue(name)
    recorder, differences = recorder_of(name), list[str]()
    with capture_server(server) as source, recorder.filled(setting) as log:
        tables = [table for table in log.tables if "PRIMARY" in table.keys]
        graphs = {table.name: _load_graph(source, log, table, _equal_columns(table)) for table in tables}
        names = [graph.root.table.name for graph in graphs.values()]
        for is_updated in (False, True):
            if is_updated:
                execute(server, *(f"UPDATE {log.database}.{table.name} SET counter = 1" for table in tables))
            changes = source.read_changes(names)
            for table in tables:
                differences += _compare(source, log, table, graphs[table.name], changes)
    assert not differences, "\n".join(differences[:40])


def test_types_that_the_log_shows_otherwise_are_read_back(
    mariadb: DatabaseServer, recorder_of: Callable[[str], Recorder]
) -> None:
    recorder = recorder_of("mariadb")
    columns = [(table, column) for table in recorder.tables for column in table.columns if _is_unequal(column)]
    assert {column.kind for _, column in columns} == {Kind.ADDRESS, Kind.ENUM, Kind.SET}
    with capture_server(mariadb) as source:
        for table, column in columns:
            graph = source.load_graph(f"{recorder.database}.{table.name}", [column.name])
            (reason,) = find_read_back_reasons(graph)
            assert reason.startswith(f"field {column.name} ")


def _load_graph(source: CapturedServer, log: Log, table: Table, columns: list[Column]) -> DocumentGraph:
    return source.load_graph(f"{log.database}.{table.name}", [column.name for column in columns])


def _equal_columns(table: Table) -> list[Column]:
    """Return the columns whose values the log shows as a read does."""
    return [column for column in table.all_columns if not _is_unequal(column)]


def _is_unequal(column: Column) -> bool:
    """Return whether the log does not tell the type of a column, or MySQL 5.7 spoils its labels."""
    is_wide = column.charset in {"ucs2", "utf16", "utf16le", "utf32"}
    return column.kind is Kind.ADDRESS or (column.kind in {Kind.ENUM, Kind.SET} and is_wide)


def _compare(source: CapturedServer, log: Log, table: Table, graph: DocumentGraph, changes: pa.Table) -> Iterator[str]:
    """Yield what differs between the documents of a table that its changes give and those that are read."""
    documents, unreadable = build_from_log(graph, changes)
    if unreadable:
        absent = [
            column
            for column in _equal_columns(table)
            if column is not COUNTER  # which every image has
            and build_from_log(_load_graph(source, log, table, [column, COUNTER]), changes)[1]
        ]
        yield from (f"{table.name}.{column.name}: not in the log" for column in absent if not _may_lack(log, column))
        graph = _load_graph(source, log, table, [column for column in _equal_columns(table) if column not in absent])
        documents, unreadable = build_from_log(graph, changes)
    assert (len(documents), unreadable) == (table.size, 0), table.name
    read = source.read_back(graph, list(documents))
    for key, text in documents.items():
        if text != read[key]:
            yield f"{table.name} {key}: {_first_difference(text or '', read[key])}"


def _may_lack(log: Log, column: Column) -> bool:
    """Return whether images may have no value of a column: numbers instead of labels that a log without them, or MySQL
    8.0.12, does not have exactly, or no generated column, which MariaDB 11 leaves out of updates."""
    if column.kind in {Kind.ENUM, Kind.SET}:
        return log.setting.metadata != "FULL" or log.server == "mysql80"
    return column.generated and log.server == "mariadb11"


def _first_difference(left: str, right: str) -> str:
    at = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    return f"{left[max(0, at - 40) : at + 40]!r} from the log, {right[max(0, at - 40) : at + 40]!r} read"
