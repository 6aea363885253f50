"""The event index against its twin, on whole logs and on broken ones."""

from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.events.layout import Entry
from penstock.binlog.events.stop_reason import StopReason
from penstock.model import Column, TableName, TableSchema, WireType
from tests.support.event_index import after_format, both
from tests.twins import event as ev
from tests.twins.event import Header, event
from tests.twins.index import State
from tests.twins.log import LogWriter
from tests.twins.row import INSERT
from tests.twins.strategy import broken, examples, logs

NUMBERS = TableSchema(TableName("d", "numbers"), (Column("a", WireType.LONG),))


@examples(40)
@given(logs(), st.integers(1, 60))
def test_agrees_with_its_twin(log: LogWriter, capacity: int) -> None:
    data, state = after_format(log)
    both(data, state, capacity)


@examples(80)
@given(st.data(), st.booleans())
def test_agrees_with_its_twin_on_broken_bytes(data: st.DataObject, is_verified: bool) -> None:
    raw, state = after_format(data.draw(logs(files=1)))
    state.is_verified = is_verified
    both(data.draw(broken(raw)), state)


@examples(100)
@given(st.binary(max_size=300), st.booleans())
def test_agrees_with_its_twin_on_garbage(data: bytes, has_checksums: bool) -> None:
    both(data, State(checksum=4 * has_checksums, is_verified=False))


@examples(150)
@given(st.integers(0, 255), st.binary(max_size=60), st.integers(0, 2**35), st.sampled_from([0, 0x20]))
def test_agrees_with_its_twin_on_every_event_type(kind: int, body: bytes, position: int, flags: int) -> None:
    raw = event(kind, body, Header(position, flags=flags))
    both(raw + raw[:19], State(position, is_verified=True))


@pytest.mark.parametrize(
    ("statement", "entry", "is_boundary"),
    [
        (b"BEGIN", 1, False),
        (b"begin", 1, False),
        (b"XA START X'61',X'',1", 1, False),
        (b"BEGIN WORK OF ART", 3, True),
        (b"CREATE TABLE t (a INT)", 3, True),
        (b"COMMIT", 3, True),
    ],
)
def test_statements_outside_a_transaction(statement: bytes, entry: int, is_boundary: bool) -> None:
    _, _, events = both(event(ev.QUERY, ev.query(statement), Header()), State())
    assert [(indexed.entry, bool(indexed.boundary)) for indexed in events] == [(entry, is_boundary)]


@pytest.mark.parametrize(
    ("statement", "entry", "is_boundary"),
    [
        (b"COMMIT", 4, True),
        (b"rollback", 4, True),
        (b"SAVEPOINT a", 0, False),
        (b"ROLLBACK TO a", 0, False),
        (b"XA END X'61',X'',1", 1, False),
        (b"xa end 'a'", 1, False),
        (b"XA ENABLE", 0, False),
    ],
)
def test_statements_inside_a_transaction(statement: bytes, entry: int, is_boundary: bool) -> None:
    first = event(ev.QUERY, ev.query(b"BEGIN"), Header())
    second = event(ev.QUERY, ev.query(statement), Header(4 + len(first)))
    _, _, events = both(first + second, State())
    assert (events[1].entry, bool(events[1].boundary)) == (entry, is_boundary)


@pytest.mark.parametrize("kind", [ev.STOP, ev.PREVIOUS_GTIDS, ev.MARIADB_CHECKPOINT, ev.MARIADB_GTID_LIST])
def test_events_that_open_or_close_a_file_are_positions_to_resume_at(kind: int) -> None:
    _, _, events = both(event(kind, bytes(8), Header()), State())
    assert [(indexed.entry, indexed.boundary) for indexed in events] == [(0, 1)]


def test_positions_continue_beyond_4_gib() -> None:
    start = (1 << 32) - 30
    first = event(ev.XID, ev.xid(), Header(start))
    second = event(ev.XID, ev.xid(), Header(start + len(first)))
    _, _, events = both(first + second, State(start))
    assert [indexed.position for indexed in events] == [start, start + len(first)]


def test_an_event_that_lies_before_the_last_one_is_refused() -> None:
    raw = event(ev.XID, ev.xid(), Header(100))
    assert both(raw + raw, State(100))[0] is StopReason.BAD_POSITION


def test_a_size_beyond_every_packet_is_refused() -> None:
    raw = bytearray(event(ev.XID, ev.xid(), Header()))
    raw[9:13] = (2 << 30).to_bytes(4, "little")
    assert both(bytes(raw), State())[0] is StopReason.BAD_SIZE


def test_events_of_a_transaction_carry_its_start_gtid_and_time() -> None:
    log = LogWriter(is_mariadb=False).open()
    log.begin()
    log.commit()
    data, state = after_format(log)
    _, _, events = both(data, state)
    assert len({(indexed.transaction, indexed.commit_us, indexed.gtid) for indexed in events}) == 1
    assert events[0].transaction == events[0].position
    assert events[0].commit_us % 1_000_000 == 123_456
    assert astuple(events[0])[-1][0] == 1


def xa(log: LogWriter, outcome: bytes | None, *, one_phase: bool = False) -> None:
    """As MySQL and MariaDB write it: prepared, and decided by a transaction of its own."""
    log.begin(statement=b"XA START X'61',X'',1")
    log.map(7, NUMBERS)
    log.rows(INSERT, 7, NUMBERS, [[1]])
    log.add(ev.QUERY, ev.query(b"XA END X'61',X'',1"))
    log.add(ev.XA_PREPARE, bytes([one_phase, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]) + b"a")
    if outcome:
        log.statement(outcome.decode())


@pytest.mark.parametrize("is_mariadb", [True, False])
@pytest.mark.parametrize("outcome", [b"XA COMMIT X'61',X'',1", b"XA ROLLBACK X'61',X'',1", None])
def test_xa_transactions(is_mariadb: bool, outcome: bytes | None) -> None:
    log = LogWriter(is_mariadb=is_mariadb).open()
    xa(log, outcome, one_phase=outcome is None)
    data, state = after_format(log)
    _, _, events = both(data, state)
    frame = [Entry.BEGIN] if is_mariadb else [Entry.OTHER, Entry.BEGIN]
    decided = [Entry.OTHER, Entry.DDL] if outcome else []
    assert [indexed.entry for indexed in events] == [*frame, Entry.OTHER, Entry.ROWS, Entry.BEGIN, Entry.END, *decided]
    assert [indexed.entry for indexed in events if indexed.boundary] == [Entry.END, Entry.DDL][: 2 if outcome else 1]
    assert len({indexed.transaction for indexed in events}) == (2 if outcome else 1)


def test_more_tags_than_a_block_can_have_stop_the_index() -> None:
    log = LogWriter().open()
    for number in range(254):
        log.begin_tagged(f"tag_{number}")
        log.commit()
    data, state = after_format(log)
    why, _, events = both(data, state, capacity=1000)
    assert (why, len(events)) == (StopReason.TAGS_FULL, 3 * 252)


def test_rows_without_a_table_map_are_not_indexed() -> None:
    log = LogWriter().open()
    log.begin()
    log.rows(INSERT, 7, NUMBERS, [[1]])
    data, state = after_format(log)
    why, where, events = both(data, state)
    assert (why, where, len(events)) == (StopReason.NO_TABLE_MAP, 42, 1)
