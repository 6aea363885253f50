"""Table ids and their maps: the index kernel adds ids by itself, and every row keeps the map that it came with."""

import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.events import known_tables
from penstock.binlog.events import reader as reader_module
from penstock.binlog.events.block import Block
from penstock.binlog.events.known_tables import KnownTables
from penstock.binlog.events.layout import Entry
from penstock.binlog.events.reader import BlockReader
from penstock.binlog.events.table_map import table_name
from penstock.model import Column, TableName, TableSchema, WireType
from tests.support.event_index import after_format, both
from tests.twins import event as ev
from tests.twins.feed import START, feed, read
from tests.twins.index import State
from tests.twins.log import LogWriter
from tests.twins.row import INSERT, table_map
from tests.twins.strategy import examples

_NAMES = ("a", "b", "ab", "商品", "ä", "x" * 200, *(f"t{n}" for n in range(40)))
_IDS = st.one_of(st.integers(1, 40), st.sampled_from([64 * n + 5 for n in range(40)]), st.integers(1 << 30, 2**48 - 2))
# Of each transaction: its table ids, and which table each of them is.
_Transactions = list[list[tuple[int, int]]]
_TRANSACTIONS = st.lists(st.lists(st.tuples(_IDS, st.integers(0, len(_NAMES) - 1)), max_size=4), max_size=60)


def table(number: int, columns: int = 1) -> TableSchema:
    shown = tuple(Column(f"column_{n}", WireType.LONG) for n in range(columns))
    return TableSchema(TableName("d", _NAMES[number % len(_NAMES)]), shown)


def write(log: LogWriter, transactions: _Transactions) -> list[TableName]:
    """Gives the table of each rows event. An id that one transaction has twice means the later table then."""
    names = list[TableName]()
    for ids in transactions:
        log.begin()
        for number, which in ids:
            log.map(number, table(which))
            log.rows(INSERT, number, table(which), [[1]])
            names.append(table(which).name)
        log.commit()
    return names


def names_in(blocks: Sequence[Block]) -> list[TableName]:
    """The table of each rows event, as the block says."""
    return [
        table_name(block.tables[number])
        for block in blocks
        for number in block.column("table_id")[block.column("entry") == Entry.ROWS].tolist()
    ]


def count_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often the reader entered the index kernel, as the only item."""
    calls, enter = [0], reader_module.index_events

    def counted(*args: Any) -> Any:
        calls[0] += 1
        return enter(*args)

    monkeypatch.setattr(reader_module, "index_events", counted)
    return calls


@examples(60)
@given(_TRANSACTIONS, st.booleans())
def test_index_and_twin_add_the_same_tables_on_lying_or_honest_ids(cases: _Transactions, has_checksums: bool) -> None:
    log = LogWriter(is_checksummed=has_checksums).open()
    write(log, cases)
    both(*after_format(log), capacity=1000)


@examples(40)
@given(_TRANSACTIONS, st.integers(0, 40))
def test_index_and_twin_agree_when_bytes_of_maps_run_out_in_pieces(cases: _Transactions, columns: int) -> None:
    log = LogWriter().open()
    for number, which in (pair for ids in cases for pair in ids):
        log.add(ev.TABLE_MAP, table_map(number, table(which, columns * 10 + 1)))
    both(*after_format(log), capacity=1000)


@examples(40)
@given(st.lists(_TRANSACTIONS, min_size=1, max_size=3), st.integers(100, 2000), st.integers(1, 20))
def test_every_row_has_the_map_that_it_came_with(files: list[_Transactions], block_bytes: int, most: int) -> None:
    """Over blocks and files, and whatever is forgotten between two transactions."""
    names, blocks = list[TableName](), list[Block]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_tables, "MAX_IDS", most)
        patch.setattr(known_tables, "MAX_MAPS", 2 * most)
        reader = BlockReader(START, block_bytes=block_bytes)
        for number, transactions in enumerate(files, 1):
            log = LogWriter(f"binlog.{number:06}").open()
            names += write(log, transactions)
            log.rotate(f"binlog.{number + 1:06}")
            blocks += feed(reader, bytes(log.data))
    assert names_in(blocks) == names


def test_ids_that_are_new_for_a_known_map_do_not_stop_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, log = count_calls(monkeypatch), LogWriter().open()
    names = write(log, [[(number, number % 40)] for number in range(1, 5001)])
    blocks = read(log, block_bytes=1 << 20)
    assert names_in(blocks) == names
    assert calls[0] < 50


def test_maps_are_known_in_the_next_file_and_ids_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = BlockReader(START)
    for number in (1, 2):
        log = LogWriter(f"binlog.{number:06}").open()
        write(log, [[(100 * number + which, which)] for which in range(len(_NAMES))])
        log.rotate(f"binlog.{number + 1:06}")
        calls = count_calls(monkeypatch)
        blocks = list(feed(reader, bytes(log.data)))
        monkeypatch.undo()
    assert calls[0] < 6
    assert {number for block in blocks for number in block.tables} == {200 + which for which in range(len(_NAMES))}


def test_ids_of_one_table_share_one_map() -> None:
    log = LogWriter().open()
    write(log, [[(number, 0)] for number in range(1, 100)])
    (block,) = read(log, block_bytes=1 << 20)
    assert len({id(body) for body in block.tables.values()}) == 1


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_tables, "MAX_IDS", 100)
    reader = BlockReader(START, block_bytes=2000)
    known, sizes = reader._state.known, list[int]()  # nobody else knows how much it remembers
    log = LogWriter().open()
    begun = 0
    for first in range(1, 3000, 100):
        write(log, [[(number, number % 3)] for number in range(first, first + 100)])
        assert list(feed(reader, bytes(log.data[begun:])))
        begun = len(log.data)
        sizes.append(int(known.counts[0]))
    assert max(sizes) <= 200


def alike(body: bytes, other: bytes) -> bytes:
    """`other` with four bytes more, so that its checksum is that of `body`: a checksum is linear in its bits."""
    target = zlib.crc32(body) ^ zlib.crc32(other + bytes(4))
    effects = [
        (zlib.crc32(other + (1 << k).to_bytes(4, "little")) ^ zlib.crc32(other + bytes(4)), 1 << k) for k in range(32)
    ]
    combined = 0
    for bit in range(32):
        pivot = next(effect for effect in effects if effect[0] >> bit & 1)
        effects = [(a ^ pivot[0], b ^ pivot[1]) if a >> bit & 1 else (a, b) for a, b in effects if (a, b) != pivot]
        if target >> bit & 1:
            target, combined = target ^ pivot[0], combined ^ pivot[1]
    assert not target
    return other + combined.to_bytes(4, "little")


def test_maps_with_the_same_checksum_are_told_apart() -> None:
    rest = b"\1\0" + b"\1d\0" + b"\1a\0" + bytes(20)
    collisions = [rest, *(alike(rest, rest[:-5] + bytes([n])) for n in range(1, 40))]
    assert len({zlib.crc32(body) for body in collisions}) == 1
    assert len({*collisions}) == 40
    log = LogWriter().open()
    numbered = [(number, collisions[number * 7 % 40]) for number in range(1, 200)]
    for number, body in numbered:
        log.add(ev.TABLE_MAP, number.to_bytes(6, "little") + body)
    both(*after_format(log), capacity=1000)
    known = KnownTables()
    for number, body in numbered:
        known.learn(number.to_bytes(6, "little") + body)
    maps = known.maps_of([number for number, _ in numbered])
    assert [body[6:] for body in maps] == [body for _, body in numbered]
    assert len({id(body) for body in maps}) == 40


def test_an_id_gets_another_map_and_others_keep_theirs() -> None:
    known = KnownTables()
    for number, which in ((1, 0), (2, 0), (1, 1)):
        known.learn(table_map(number, table(which)))
    assert {number: table_name(body).table for number, body in known.ids.items()} == {1: "b", 2: "a"}
    assert 3 not in known


def test_names_that_lie_about_their_size_are_left_to_python() -> None:
    whole = table_map(7, table(0))
    for size in range(8, len(whole)):
        log = LogWriter().open()
        log.add(ev.TABLE_MAP, whole[:size])
        data, state = after_format(log)
        both(data, state)
        assert state.maps == {whole[6:size]: whole[:size]}


def test_room_grows_in_few_steps() -> None:
    known, rooms = KnownTables(), list[int]()
    for number in range(1, 5000):
        known.learn(table_map(number, table(number)))
        rooms.append(known.room[0])
    assert len({*rooms}) < 6
    assert all(room <= other for room, other in pairwise(rooms))
    assert len(known.ids) == 4999
    assert State().room == KnownTables().room
