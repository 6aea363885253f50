"""`penstock index verify --explain` says which change of the log a document lacks, or that somebody else wrote it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from penstock.client import ServerAddress
from penstock.document import DOCUMENT_DECODING, DocumentBuilder, DocumentSpec
from penstock.document.difference_cause import DifferenceCause
from penstock.document.difference_check import DifferenceCheck
from penstock.document.verify import IndexVerifier
from penstock.model import LogRequirement, Position
from penstock.search import OPERATIONS
from penstock.snapshot.source_rows import SourceRows
from penstock.spark.log_history import LogHistory, PassLimits
from penstock.testing import DatabaseServer
from tests.support.capture import end_of, execute, source_of
from tests.support.document_stream import DocumentStream, open_stream

PENSTOCK = Path(sys.executable).with_name("penstock")
NewDatabase = Callable[[DatabaseServer], str]


@pytest.fixture(params=["mariadb", "mysql80"])
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


def create_orders(server: DatabaseServer, name: str) -> DocumentSpec:
    orders = ", ".join(f"({number}, 2, 'open', 0)" for number in range(1, 20))
    execute(
        server,
        f"CREATE TABLE {name}.customer (id INT PRIMARY KEY, name VARCHAR(20), remark INT)",
        f"CREATE TABLE {name}.orders (id INT PRIMARY KEY, customer_id INT, state VARCHAR(20), remark INT)",
        f"CREATE TABLE {name}.line (order_id INT, n INT, text VARCHAR(20), PRIMARY KEY (order_id, n))",
        f"CREATE TABLE {name}.tag (id INT PRIMARY KEY, name VARCHAR(20))",
        f"CREATE TABLE {name}.order_tag (order_id INT, tag_id INT, PRIMARY KEY (order_id, tag_id), KEY (tag_id))",
        f"INSERT INTO {name}.customer VALUES (1, 'Ana', 0), (2, 'Bo', 0)",
        f"INSERT INTO {name}.orders VALUES {orders}",
        f"INSERT INTO {name}.line VALUES (4, 1, 'pen')",
        f"INSERT INTO {name}.tag VALUES (1, 'gift')",
        f"INSERT INTO {name}.order_tag VALUES (6, 1)",
    )
    link = {"table": f"{name}.order_tag", "on": {"id": "order_id"}, "to": {"tag_id": "id"}}
    joins = {
        "customer": {"table": f"{name}.customer", "on": {"customer_id": "id"}, "fields": ["name"]},
        "lines": {"table": f"{name}.line", "many": True, "on": {"id": "order_id"}, "fields": ["text"]},
        "tags": {"table": f"{name}.tag", "many": True, "through": link, "fields": ["name"]},
    }
    root = {"table": f"{name}.orders", "fields": ["state"], "joins": joins}
    return DocumentSpec.model_validate({"index": "orders", "root": root})


class Applied:
    """Everything is taken for applied, also what was skipped."""

    def __init__(self, server: DatabaseServer) -> None:
        self._server = server

    def source_end(self) -> Position:
        return end_of(self._server)

    def find_requirement(self) -> LogRequirement | None:
        return None

    def wait_applied(self, _position: Position) -> str:
        return ""


def find_causes(server: DatabaseServer, stream: DocumentStream, **options: Any) -> dict[str, DifferenceCause]:
    """Verify an index, and return why its documents differ, by id."""
    with closing(SourceRows(source_of(server), DOCUMENT_DECODING)) as rows:
        builder = DocumentBuilder(stream.sync.graph, rows)
        check = DifferenceCheck(builder, rows, stream.index, Applied(server), pause=lambda _: None)
        differences = IndexVerifier(builder, stream.index, check).run().differences
        keys = {difference.id: check.find_key(difference.id) for difference in differences}
        history = LogHistory(ServerAddress(stream.address), "default", stream.sync.graph, rows, **options)
        return {cause.id: cause for cause in history.find_causes(differences, keys)}


def write(stream: DocumentStream, name: str, version: int, document: dict[str, Any] | None) -> None:
    """Write a document around sync."""
    text = None if document is None else json.dumps(document)
    columns = {"id": [name], "version": [version], "document": [text], "routing": [None]}
    stream.index.write(pa.table([pa.array(columns[part.name], part.type) for part in OPERATIONS], schema=OPERATIONS))
    stream.index.refresh()


def version_of(stream: DocumentStream, name: str) -> int:
    return stream.index.read_documents([(name, None)]).column("version")[0].as_py()


@contextmanager
def followed_orders(
    server: DatabaseServer, database: NewDatabase, folder: Path
) -> Iterator[tuple[DocumentStream, str]]:
    name = database(server)
    with open_stream(server, create_orders(server, name), folder) as stream:
        yield stream, name


def test_missed_changes_are_named_and_foreign_writes_are_told_from_them(
    server: DatabaseServer, database: NewDatabase, tmp_path: Path
) -> None:
    with followed_orders(server, database, tmp_path) as (stream, name):
        execute(server, f"UPDATE {name}.orders SET state = 'paid' WHERE id IN (2, 3)")
        execute(server, f"UPDATE {name}.orders SET customer_id = 1 WHERE id = 5")
        stream.follow()
        execute(server, f"UPDATE {name}.orders SET remark = 9 WHERE id = 3")  # a column that no document uses
        execute(server, f"UPDATE {name}.orders SET state = 'sent' WHERE id = 2")
        execute(server, f"UPDATE {name}.orders SET state = 'back' WHERE id = 2")
        execute(server, f"DELETE FROM {name}.line WHERE order_id = 4")
        execute(server, "FLUSH BINARY LOGS")
        execute(server, f"UPDATE {name}.customer SET name = 'Eva' WHERE id = 1")
        execute(server, f"INSERT INTO {name}.order_tag VALUES (7, 1)")
        execute(server, f"UPDATE {name}.tag SET name = 'toy' WHERE id = 1")
        execute(server, f"INSERT INTO {name}.orders VALUES (20, NULL, 'new', 0)")
        execute(server, f"DELETE FROM {name}.orders WHERE id = 8")
        stream.start = end_of(server)  # all these are missed
        write(stream, "3", version_of(stream, "3"), {"state": "damaged"})
        write(stream, "9", version_of(stream, "9"), {"state": "damaged"})
        write(stream, "10", version_of(stream, "10") + (1 << 50), {"state": "damaged"})
        write(stream, "11", version_of(stream, "11"), None)
        write(stream, "somebody", 1, {"state": "damaged"})
        causes = find_causes(server, stream)
        short = limited_causes(server, stream)
    assert {key: cause.cause.value for key, cause in causes.items()} == {
        **dict.fromkeys(("2", "4", "5", "6", "7", "8"), "missed"),
        **dict.fromkeys(("3", "9", "10", "somebody"), "foreign"),
        **dict.fromkeys(("11", "20"), "missed_or_foreign"),
    }
    named = {key: (cause.changes[0].type, cause.changes[0].table) for key, cause in causes.items() if cause.changes}
    assert named == {
        "2": ("update", f"{name}.orders"),
        "3": ("update", f"{name}.orders"),
        "4": ("delete", f"{name}.line"),
        "5": ("update", f"{name}.customer"),
        "6": ("update", f"{name}.tag"),
        "7": ("insert", f"{name}.order_tag"),
        "8": ("delete", f"{name}.orders"),
        "10": ("insert", f"{name}.orders"),
        "11": ("insert", f"{name}.orders"),
        "20": ("insert", f"{name}.orders"),
    }
    assert "and 1 more" in causes["2"].detail
    assert f"at {causes['2'].changes[0].position} (" in causes["2"].detail
    assert causes["2"].changes[0].time is not None
    assert "with the same version" in causes["3"].detail
    assert "loaded or repaired" in causes["9"].detail
    assert "no position of the log" in causes["10"].detail
    assert "no position of the log" in causes["somebody"].detail
    assert short["5"] == "missed", "the newest file is read first"
    assert short["9"] == "unknown"


def limited_causes(server: DatabaseServer, stream: DocumentStream) -> dict[str, str]:
    """Return why documents differ when only the newest file of the log may be read."""
    end = end_of(server)
    limits = PassLimits(max_bytes=end.offset)
    return {key: cause.cause.value for key, cause in find_causes(server, stream, limits=limits).items()}


def test_the_command_prints_causes_after_the_differences(
    mariadb: DatabaseServer, database: NewDatabase, tmp_path: Path
) -> None:
    name, index, file = database(mariadb), tmp_path / "index", tmp_path / "orders.yml"
    spec = create_orders(mariadb, name)
    file.write_text(yaml.safe_dump(spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)))
    with open_stream(mariadb, spec, index) as stream:
        execute(mariadb, f"UPDATE {name}.orders SET state = 'paid' WHERE id = 2")
        stream.start = end_of(mariadb)
        command = [str(PENSTOCK), "index", "verify", str(file), "--index", str(index), "--server", stream.address]
        command += ["--host", mariadb.host, "--port", str(mariadb.port), "--user", mariadb.user, "--settle", "0"]
        environment = {**os.environ, "PENSTOCK_PASSWORD": mariadb.password}
        options = ["--explain", "--sample", "100%", "--output", "json"]
        done = subprocess.run(
            [*command, *options], env=environment, capture_output=True, text=True, timeout=120, check=False
        )
    assert done.returncode == 3, done.stderr
    difference, cause, result = map(json.loads, done.stdout.splitlines())
    assert (difference["event"], difference["id"], difference["kind"]) == ("difference", "2", "stale")
    assert (cause["event"], cause["id"], cause["cause"]) == ("cause", "2", "missed")
    (change,) = cause["changes"]
    assert (change["table"], change["type"]) == (f"{name}.orders", "update")
    assert (result["event"], result["stale"], result["share"]) == ("result", 1, 1.0)
