"""The function in Python of docs/sync.md, as it is written there, between a real database and an index."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from penstock.cli import app
from penstock.document import DeadLetterOutcome
from penstock.document.spec_location import load_located_spec
from penstock.search.dead_letters import DeadLetters, dead_letters_path
from penstock.search.embedded import EmbeddedIndex
from tests.support.capture import execute
from tests.support.document_stream import open_stream

SECTION = (Path(__file__).parents[2] / "docs" / "sync.md").read_text(encoding="utf-8").partition("## A function in")[2]
TABLES = (
    "CREATE TABLE {0}.customer (id INT PRIMARY KEY, name VARCHAR(40))",
    """CREATE TABLE {0}.orders (id INT PRIMARY KEY, number VARCHAR(10), total DECIMAL(30, 10), customer_id INT,
       KEY (customer_id))""",
    """CREATE TABLE {0}.order_line (order_id INT, position INT, quantity BIGINT UNSIGNED, price DOUBLE,
       PRIMARY KEY (order_id, position))""",
    "INSERT INTO {0}.customer VALUES (5, 'Ana Braga'), (6, NULL)",
    "INSERT INTO {0}.orders VALUES (1, 'A1', 98765432109876543210.0000000001, 5), (2, 'A2', 10, NULL), (3, 'A3', 1, 6)",
    "INSERT INTO {0}.order_line VALUES (1, 1, 18446744073709551615, 1e200), (1, 2, 1, 0.1)",
)


def write_example(folder: Path, schema: str) -> Path:
    """Write the spec and the function of the page, and return the file of the spec."""
    blocks = dict(re.findall(r"```(yaml|python)\n(.*?)```", SECTION, re.DOTALL)[:2])
    (folder / "orders_hook.py").write_text(blocks["python"])
    path = folder / "orders.yml"
    path.write_text(blocks["yaml"].replace("shop.", f"{schema}."))
    return path


def test_documents_pass_through_the_function(mariadb: Any, database: Callable[[Any], str], tmp_path: Path) -> None:
    schema = database(mariadb)
    execute(mariadb, *(sql.format(schema) for sql in TABLES))
    path, checkpoint = write_example(tmp_path, schema), tmp_path / "checkpoint"
    spec = load_located_spec(path)
    with DeadLetters.open(dead_letters_path(checkpoint)) as letters:
        with open_stream(mariadb, spec, tmp_path / "index", DeadLetterOutcome("orders", letters)) as stream:
            (text,) = stream.index.documents().column("document").to_pylist()
            assert text == (
                '{"number":"A1","total":98765432109876543210.0000000001,"customer":{"name":"Ana Braga"},"lines":'
                '[{"quantity":18446744073709551615,"price":1E+200},{"quantity":1,"price":0.1}],"initials":"AB",'
                '"score":9876543210987654323.000000000'
                "}"
            )
            assert [hit.id for hit in stream.index.search("initials:AB")] == ["1"]
            (letter,) = letters.read_page()
            assert (letter.id, letter.before_transform) == ("3", True)
            assert letter.reason == (
                "transform orders_hook.py:enrich, line 8: AttributeError: 'NoneType' object has no attribute 'split'"
            )

            execute(mariadb, f"UPDATE {schema}.orders SET customer_id = 5 WHERE id = 2")
            execute(mariadb, f"UPDATE {schema}.customer SET name = 'Bo' WHERE id = 6")
            counts = stream.follow().documents
            assert (counts.written, counts.rejected) == (2, 0)
            assert {key: row["initials"] for key, row in stream.documents().items()} == {"1": "AB", "2": "AB", "3": "B"}
            assert not letters.count()

            execute(mariadb, f"DELETE FROM {schema}.customer WHERE id = 5")
            execute(mariadb, f"UPDATE {schema}.orders SET total = NULL WHERE id = 3")
            counts = stream.follow().documents
            assert (counts.deleted, counts.rejected) == (2, 1)
            assert [item.id for item in letters.read_page()] == ["3"]
            assert set(stream.documents()) == {"3"}, "with the state before the failure"

            execute(mariadb, f"ALTER TABLE {schema}.orders MODIFY number VARCHAR(20)")
            assert stream.follow().documents.rejected == 1

        (letter,) = letters.read_page()
        hook = path.with_name("orders_hook.py")
        hook.write_text(hook.read_text().replace('document["total"] *', '(document["total"] or 0) *'))
        retry = ["dlq", "retry", checkpoint, "--index", tmp_path / "index", "--spec", path]
        result = CliRunner().invoke(app, list(map(str, retry)))
        assert result.exit_code == 0, result.output
        assert not letters.count()
    with EmbeddedIndex.open(tmp_path / "index") as index:
        assert index.get("3") == {
            "number": "A3", "total": None, "customer": {"name": "Bo"}, "lines": [], "initials": "B", "score": 0.0,
        }  # fmt: skip
