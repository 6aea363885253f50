"""Statements in a filter: those of accounts, those behind rows, and what is left of passwords."""

import zlib

import numpy as np
import pytest

from penstock.binlog.events.layout import Entry
from penstock.config import FilterSettings
from penstock.config.filter_settings import KINDS
from penstock.filter import BlockFilter
from tests.support.filter_log import FilterLog, blocks_of
from tests.twins.log import LogWriter

A, B = 7, 8
SECRETS = ("CREATE USER u IDENTIFIED BY 'geheim'", "SET PASSWORD FOR u = '*geheim'")


def statements_log(*texts: str) -> FilterLog:
    log = FilterLog(LogWriter().open())
    for text in texts:
        log.statement((text, "dcl", ()))
    return log


def test_accounts_are_dropped_unless_somebody_asks_for_them() -> None:
    assert "dcl" not in FilterSettings().kinds
    for settings in (FilterSettings(), FilterSettings(deny=())):
        (block,) = blocks_of(statements_log(*SECRETS, "DROP USER u", "GRANT ALL ON *.* TO u"), [])
        filtered = BlockFilter(settings).apply(block)
        assert not (filtered.column("entry") == Entry.DDL).any()
        assert b"geheim" not in filtered.event_array.to_pylist()[0]


@pytest.mark.parametrize("deny", [(), ("shop.b",)])
def test_passwords_never_come_into_the_store(deny: tuple[str, ...]) -> None:
    log = statements_log(*SECRETS, "CREATE SERVER s FOREIGN DATA WRAPPER m OPTIONS (PASSWORD 'geheim')", "DROP USER u")
    (block,) = blocks_of(log, [])
    filtered = BlockFilter(FilterSettings(kinds=KINDS, deny=deny)).apply(block)
    events = filtered.event_array.to_pylist()
    assert filtered.column("position").tolist() == block.column("position").tolist()
    assert [len(event) for event in events] == [len(event) for event in block.event_array.to_pylist()]
    assert not any(b"geheim" in event for event in events)
    assert sum(b"'***'" in event for event in events) == 3
    for event, checksum in zip(events, filtered.column("checksum").tolist(), strict=True):
        if checksum:
            assert zlib.crc32(event[:-4]) == int.from_bytes(event[-4:], "little")
    assert b"geheim" in block.data.tobytes(), "the block that came is somebody else's"


def test_a_block_without_secrets_is_not_copied() -> None:
    (block,) = blocks_of(statements_log("DROP USER u"), [])
    assert BlockFilter(FilterSettings(kinds=KINDS, deny=())).apply(block) is block


@pytest.mark.parametrize("is_mariadb", [True, False])
def test_a_statement_behind_rows_goes_with_them_wherever_blocks_end(is_mariadb: bool) -> None:
    """The statement of a dropped table is there in no block, that of a wanted one in exactly one."""
    log = FilterLog(LogWriter(is_mariadb=is_mariadb).open())
    log.begin()
    edges = list[int]()
    for number in (A, B, A, B):
        log.text()
        edges.append(len(log.log.data))
        log.map(number)
        edges.append(len(log.log.data))
        log.rows(number, "insert")
    log.commit(with_query=False)
    notes = [position for position, event in log.events.items() if event.role == "note"]
    for cut in edges:
        ours = BlockFilter(FilterSettings(allow=("shop.a",)))
        filtered = [ours.apply(block) for block in blocks_of(log, [cut])]
        assert len(filtered) == 2
        kept = np.concatenate([block.column("position") for block in filtered]).tolist()
        assert [position for position in notes if position in kept] == notes[::2], cut
