"""Statements as canal's entries: their types and names, who gets them, and the statements behind rows."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.binlog.events.block import Block
from penstock.canal import messages
from penstock.canal.types import CanalEventType, EntryType
from penstock.instance.filter import parse_client_filter
from penstock.model import TableName
from penstock.render.canal import EntryEncoder, EntryOptions
from penstock.schema.declared import logged_column_types
from penstock.store.block_info import EntryPosition
from penstock.store.client import StoreClient
from tests.support.filter_log import FilterLog, blocks_of
from tests.twins.log import LogWriter

A, B = 7, 8
Wanted = Callable[[TableName], bool] | None


def found_in(entries: EntryEncoder, block: Block) -> list[Any]:
    raw = messages.Messages.FromString(entries.encode_block(block).data.tobytes()).messages
    return [messages.Entry.FromString(each) for each in raw]


def told(text: str, wants: str = "", **rendering: Any) -> tuple[str, str, str] | None:
    """Type, name and text of the entry that a statement becomes; the database in use is `shop`."""
    log = FilterLog(LogWriter().open())
    log.statement((text, "ddl", ()))
    (block,) = blocks_of(log, [])
    entries = EntryEncoder(EntryOptions(logged_column_types, wants_table=parse_client_filter(wants), **rendering))
    rows = [entry for entry in found_in(entries, block) if entry.entryType == EntryType.ROWDATA]
    if not rows:
        return None
    (entry,) = rows
    change = messages.RowChange.FromString(entry.storeValue)
    assert change.eventType == entry.header.eventType
    assert change.isDdl == (
        change.eventType not in (CanalEventType.INSERT, CanalEventType.UPDATE, CanalEventType.DELETE)
    )
    return CanalEventType(change.eventType).name, f"{entry.header.schemaName}.{entry.header.tableName}", change.sql


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("CREATE TABLE a (id INT)", "CREATE", "shop.a"),
        ("ALTER TABLE a ADD c INT UNIQUE", "ALTER", "shop.a"),
        ("ALTER TABLE crm.a ADD INDEX i (id)", "CINDEX", "crm.a"),
        ("ALTER TABLE a ADD UNIQUE KEY i (id), ADD c INT", "CINDEX", "shop.a"),
        ("ALTER TABLE a ADD FULLTEXT INDEX i (id)", "CINDEX", "shop.a"),
        ("ALTER TABLE a ADD PRIMARY KEY (id)", "CINDEX", "shop.a"),
        ("ALTER TABLE a ADD CONSTRAINT u UNIQUE (id)", "CINDEX", "shop.a"),
        ("ALTER TABLE a ADD c INT, ADD INDEX i (id)", "ALTER", "shop.a"),
        ("ALTER TABLE a ADD FOREIGN KEY (id) REFERENCES b (id)", "ALTER", "shop.a"),
        ("ALTER TABLE a DROP INDEX i", "DINDEX", "shop.a"),
        ("ALTER TABLE a DROP KEY i", "DINDEX", "shop.a"),
        ("ALTER TABLE a DROP CONSTRAINT i", "DINDEX", "shop.a"),
        ("ALTER TABLE a DROP PRIMARY KEY", "ALTER", "shop.a"),
        ("ALTER TABLE a DROP COLUMN c", "ALTER", "shop.a"),
        ("ALTER TABLE a RENAME TO b", "RENAME", "shop.b"),
        ("ALTER TABLE a RENAME AS crm.b", "RENAME", "crm.b"),
        ("ALTER TABLE a RENAME COLUMN c TO d", "ALTER", "shop.a"),
        ("ALTER TABLE a FROBNICATE", "ALTER", "shop.a"),
        ("RENAME TABLE a TO b", "RENAME", "shop.b"),
        ("RENAME TABLE a TO old_a, crm.b TO a", "RENAME", "shop.old_a"),
        ("TRUNCATE TABLE a", "TRUNCATE", "shop.a"),
        ("TRUNCATE crm.a", "TRUNCATE", "crm.a"),
        ("DROP TABLE a, b", "ERASE", "shop.a"),
        ("CREATE INDEX i ON a (id)", "CINDEX", "shop.a"),
        ("DROP INDEX i ON a", "DINDEX", "shop.a"),
        ("CREATE DATABASE crm", "QUERY", "crm."),
        ("ANALYZE TABLE a", "QUERY", "shop.a"),
        ("INSERT INTO crm.a VALUES (1)", "INSERT", "crm.a"),
        ("/* c */ REPLACE INTO a VALUES (1)", "INSERT", "shop.a"),
        ("UPDATE a SET id = 1", "UPDATE", "shop.a"),
        ("DELETE FROM a", "DELETE", "shop.a"),
    ],
)
def test_a_statement_has_the_type_and_the_name_that_canal_gives_it(text: str, kind: str, name: str) -> None:
    assert told(text) == (kind, name, text)
    assert told(text, r".*\..*") == (kind, name, text)
    assert told(text, r"nomatch\..*") is None


@pytest.mark.parametrize("wants", ["shop.a", "shop.b", "crm.c", r"shop\..*"])
def test_a_rename_passes_with_any_of_its_names(wants: str) -> None:
    assert told("RENAME TABLE a TO b, a TO crm.c", wants) is not None


@pytest.mark.parametrize("text", ["CREATE VIEW v AS SELECT 1", "ALTER VIEW v AS SELECT 1", "DROP VIEW v"])
def test_views_are_no_entries(text: str) -> None:
    assert told(text) is None


@pytest.mark.parametrize(
    ("text", "wants", "passes"),
    [
        ("DROP DATABASE crm", r"crm\.a", True),
        ("DROP DATABASE crm", r"shop\.a", False),
        ("CREATE PROCEDURE p() DELETE FROM crm.a", r"shop\..*", True),
        ("CREATE PROCEDURE p() DELETE FROM crm.a", r"crm\..*", False),
        ("CREATE TABLESPACE t", r".*\..*", True),
        ("CREATE TABLESPACE t", r"shop\..*", False),
        ("SELECT f(1)", r"shop\..*", False),
    ],
)
def test_what_is_of_no_table_passes_by_its_database(text: str, wants: str, passes: bool) -> None:
    assert (told(text, wants) is not None) is passes


@pytest.mark.parametrize(
    "text",
    [
        "CREATE USER 'u'@'h' IDENTIFIED BY 'geheim'",
        "ALTER USER 'u'@'h' IDENTIFIED BY 'geheim'",
        "SET PASSWORD FOR 'u'@'h'='geheim'",
        "GRANT ALL ON *.* TO 'u'@'h' IDENTIFIED BY 'geheim'",
    ],
)
def test_accounts_are_for_who_asks_for_them_without_passwords(text: str) -> None:
    masked = text.replace("geheim", "***")
    assert told(text) is None
    assert told(text, accounts=True) == ("QUERY", ".", masked)
    assert told(text, r".*\..*", accounts=True) == ("QUERY", ".", masked)
    assert told(text, r"shop\..*", accounts=True) is None


def notes_log(is_mariadb: bool) -> tuple[FilterLog, list[int]]:
    """Statements and rows of two tables in turn, and where a block may end: before and after each table map."""
    log = FilterLog(LogWriter(is_mariadb=is_mariadb).open())
    log.begin()
    edges = list[int]()
    for number in (A, B, B, A, B):
        log.text()
        edges.append(len(log.log.data))
        log.map(number)
        edges.append(len(log.log.data))
        log.rows(number, "insert")
    log.commit(with_query=False)
    return log, edges


def shown_to(wants: Wanted, block: Block) -> Block:
    """As the store gives it to a client with a filter."""
    begin = EntryPosition(0, block.start, 0)
    return StoreClient("x", begin, begin, begin, filter=wants).filter_block(block)


def texts_of(entries: list[Any]) -> list[str]:
    """`note`, or the table whose rows it has."""
    rows = [entry for entry in entries if entry.entryType == EntryType.ROWDATA]
    return [entry.header.tableName or "note" for entry in rows]


@pytest.mark.parametrize("is_mariadb", [True, False])
def test_a_statement_behind_rows_is_shown_with_them_wherever_blocks_end(is_mariadb: bool) -> None:
    log, edges = notes_log(is_mariadb)
    wants = parse_client_filter(r"shop\.a")
    for cut in edges:
        entries = EntryEncoder(EntryOptions(logged_column_types, wants_table=wants))
        blocks = [shown_to(wants, block) for block in blocks_of(log, [cut])]
        assert len(blocks) == 2
        encoded = [entry for block in blocks for entry in found_in(entries, block)]
        assert texts_of(encoded) == ["note", "a", "note", "a"], cut
        # After a rollback the second block is redelivered.
        again = texts_of(found_in(entries, blocks[1]))
        assert again == texts_of(encoded)[-len(again) :] if again else True
        whole = [entry for block in blocks for entry in found_in(entries, block)]
        assert [entry.SerializeToString() for entry in whole] == [entry.SerializeToString() for entry in encoded]


def test_without_a_filter_every_statement_behind_rows_is_shown_once() -> None:
    log, edges = notes_log(is_mariadb=True)
    for cut in edges:
        entries = EntryEncoder(EntryOptions(logged_column_types))
        encoded = [entry for block in blocks_of(log, [cut]) for entry in found_in(entries, block)]
        assert texts_of(encoded) == ["note", "a", "note", "b", "note", "b", "note", "a", "note", "b"]
