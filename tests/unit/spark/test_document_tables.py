"""What is known of tables survives in a file."""

import json
from pathlib import Path

from penstock.document import DocumentTables
from penstock.model import Column, Position, TableName, TableSchema, WireType
from penstock.search.index import FieldKind
from penstock.spark.sync_state import SyncState
from penstock.spark.sync_terms import begin_term

NAME = TableName("shop", "größe")
KNOWN = DocumentTables(
    {
        NAME: TableSchema(
            NAME,
            (
                Column("id", WireType.LONG, size=4, unsigned=True, nullable=False),
                Column("kind", WireType.ENUM, size=1, charset="utf8mb4", labels=("a", "b'c")),
            ),
            ("id",),
            key_prefixes=(0,),
        )
    },
    {NAME: [("id",), ("kind", "id")]},
    {NAME: frozenset({"kind"})},
    {(NAME, "id * 2"): FieldKind.INTEGER},
)


def test_known_tables_pass_through_json() -> None:
    assert DocumentTables.from_json(json.loads(json.dumps(KNOWN.to_json()))) == KNOWN


def test_tables_are_known_of_an_index_that_is_loaded_also_in_the_next_term(tmp_path: Path) -> None:
    state = SyncState(tmp_path / "checkpoint")
    state.make_folder()
    state.remember_tables("product", KNOWN)
    assert state.known_tables("product") is None, "the spec may be wrong as long as nothing was loaded with it"
    state.remember_loading("product", Position("binlog.000001", 4))
    assert SyncState(tmp_path / "checkpoint").known_tables("product") == KNOWN
    assert state.known_tables("other") is None
    assert SyncState(begin_term(tmp_path / "checkpoint", "shop", 7)).known_tables("product") == KNOWN
