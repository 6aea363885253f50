"""Filters that clients send: the same meaning as `re`, and no text that keeps a server busy."""

import re
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.events.layout import Entry
from penstock.errors import ConfigurationError
from penstock.instance.clients import Clients
from penstock.instance.filter import MAX_FILTER_BYTES, parse_client_filter
from penstock.meta import MetaManager
from penstock.model import Column, Position, TableName, TableSchema, WireType
from penstock.model.table_rules import split_list
from penstock.store import EventStore, MemoryStorage
from penstock.store.block_info import EntryPosition
from penstock.store.client import StoreClient
from penstock.store.rows_filter import BatchFilter
from tests.twins.feed import read
from tests.twins.log import LogWriter
from tests.twins.row import INSERT

START = Position("binlog.000001", 4)
PIECES = (
    *"abÄ_1.^$",
    *(r"\.", r"\_", r"\-", r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\u00e4", r"\x61", r"\141", r"\Ä"),
    *("[ab]", "[^ab]", "[]a]", "[^]a]", r"[\w.]", r"[\d_]", r"[^\s]", "[[:a]", "[[:alpha:]]", r"[\]ä]", "[a-b]"),
    *(
        "a?",
        "b*",
        "a+",
        "a{2}",
        "a{,2}",
        "b{1,2}",
        "(a|b)",
        "(?:a|b.)",
        "(?P<n>a)",
        "(?i:A)",
        "(?-i:a)",
        "a{x",
        "]",
        "}",
    ),
    *("ſ", "ß", ".*", ".*?"),
)


@pytest.mark.filterwarnings("ignore:Possible nested set:FutureWarning")
@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join),
    st.text("abAÄä_1-.[]{}: ßſsx^", max_size=4),
    st.text("abAÄä_1-.[]{}: ßſsx^", max_size=4),
)
def test_it_means_what_re_means(text: str, database: str, table: str) -> None:
    name = TableName(database, table)
    try:
        rules = [re.compile(rule, re.IGNORECASE) for rule in split_list(text)]
    except re.error:
        return
    client_filter = parse_client_filter(text)
    assert (client_filter is None or client_filter(name)) == (
        not rules or any(rule.fullmatch(str(name)) for rule in rules)
    )


@pytest.mark.parametrize("text", [r"dg\.(a|a)*!", r"dg\.(a*)*!", r"(.*)*\.(.*)*!,x.y"])
def test_no_text_takes_for_ever(text: str) -> None:
    code = (
        "import sys\nfrom penstock.instance.filter import parse_client_filter\nfrom penstock.model import TableName\n"
        "assert not parse_client_filter(sys.argv[1])(TableName('dg', 'a' * 44))\nassert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, text], check=True, timeout=20)


@pytest.mark.parametrize("text", [r"\w{1,64}\.\w{1,64}", "[ -\U0010ffff]" * 500, "(" * 1500 + ")" * 1500, "a," * 2000])
def test_what_is_large_is_quick_or_refused(text: str) -> None:
    began = time.monotonic()
    try:
        client_filter = parse_client_filter(text)
        assert client_filter is not None
        for number in range(10):
            client_filter(TableName("shop", f"t{number}"))
    except ConfigurationError:
        pass
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (r"shop\.(?!a).*", "instance's filter"),
        (r"x.y,shop\..*(?<=a)", "instance's filter"),
        (r"(a)\.\1", "back reference.*instance's filter"),
        (r"(?P<n>a)\.(?P=n)", "instance's filter"),
        (r"shop\.a\b.*", "instance's filter"),
        (r"shop\.[\W]", "instance's filter"),
        (r"shop\.a{5000}", "instance's filter"),
        (r"shop\.\Qa", "means nothing"),
        ("a)|(b", "is no regular expression: unexpected"),
        ("[a", "is no regular expression: missing ]"),
        ("*", "is no regular expression: no argument"),
        ("a\\", "is no regular expression: trailing"),
        ("a" * (MAX_FILTER_BYTES + 1), "4097 bytes.*at most 4096"),
        ("ä" * (MAX_FILTER_BYTES // 2 + 1), "4098 bytes"),
        ("a\ud800", "no text in UTF-8"),
    ],
)
def test_what_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as raised:
        parse_client_filter(text)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 700


def test_names_of_groups_may_be_repeated() -> None:
    client_filter = parse_client_filter("(?P<n>a).b,(?P<n>c).d")
    assert client_filter is not None
    assert [client_filter(TableName.parse(name)) for name in ("a.b", "c.d", "a.d")] == [True, True, False]


def test_more_tables_than_are_remembered() -> None:
    client_filter = parse_client_filter(r"shop\.t\d*[02468]")
    assert client_filter is not None
    assert [client_filter(TableName("shop", f"t{number}")) for number in range(5000)] == [
        number % 2 == 0 for number in range(5000)
    ]


def test_one_that_was_kept_from_before_keeps_nobody_from_starting(caplog: pytest.LogCaptureFixture) -> None:
    meta = MetaManager("d")
    meta.subscribe(1, r"shop\.(?!a).*")
    meta.subscribe(2, r"shop\..*")
    store = EventStore(MemoryStorage(1 << 20), START)
    clients = Clients(store, meta)
    clients.start()
    assert set(store.states()) == {"1", "2"}
    assert clients.subscriptions()[1] == r"shop\.(?!a).*"
    assert "client=1" in caplog.text
    with pytest.raises(ConfigurationError, match="instance's filter"):
        clients.subscribe(1, r"shop\.(?!a).*")


@given(st.sets(st.tuples(st.sampled_from(["shop", "crm", ""]), st.text("ab_Ä", max_size=2))))
def test_many_tables_at_once_pass_as_one_after_the_other(names: set[tuple[str, str]]) -> None:
    tables = [TableName(*name) for name in sorted(names)]
    text = r"shop\..*,crm\.[ab]*"
    parse_client_filter.cache_clear()
    expected = [parse_client_filter(text)(table) for table in tables]  # type: ignore[misc]
    parse_client_filter.cache_clear()
    client_filter = parse_client_filter(text)
    assert isinstance(client_filter, BatchFilter)
    client_filter.prepare(tables[::2])
    client_filter.prepare(tables)
    assert [client_filter(table) for table in tables] == expected


def test_tables_that_are_new_are_matched_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, match = list[int](), pc.match_substring_regex

    def counted(names: Any, **options: Any) -> Any:
        calls.append(len(names))
        return match(names, **options)

    parse_client_filter.cache_clear()
    wants = parse_client_filter(r"shop\.t\d*[02468]")
    monkeypatch.setattr(pc, "match_substring_regex", counted)
    log, tables = LogWriter().open(), [orders(number) for number in range(100)]
    for number, table in enumerate(tables, 1):
        log.begin()
        log.map(number, table)
        log.rows(INSERT, number, table, [[1]])
        log.commit()
    (block,) = read(log)
    begin = EntryPosition(0, block.start, 0)
    for _ in range(2):
        shown = StoreClient("x", begin, begin, begin, filter=wants).filter_block(block)
        assert {*shown.tables} == {*range(1, 101, 2)}
        rows = shown.column("entry") == Entry.ROWS
        assert shown.column("table_id")[rows].tolist() == [*range(1, 101, 2)]
    assert calls == [100]


def orders(number: int) -> TableSchema:
    return TableSchema(TableName("shop", f"t{number}"), (Column("a", WireType.LONG),))


def test_a_part_of_a_block_is_filtered_by_its_own_tables() -> None:
    """A client that gets little at a time asks nothing about the thousands of other tables of the block."""
    log = LogWriter().open()
    for number in range(1, 101):
        log.begin()
        log.map(number, orders(number))
        log.rows(INSERT, number, orders(number), [[1]])
        log.commit()
    (block,) = read(log)
    asked = list[TableName]()

    def wants(table: TableName) -> bool:
        asked.append(table)
        return table.table != "t2"

    begin = EntryPosition(0, block.start, 0)
    rows = np.flatnonzero(block.column("entry") == Entry.ROWS)
    shown = StoreClient("x", begin, begin, begin, filter=wants).filter_block(
        block.slice(int(rows[0]), int(rows[2]) + 1)
    )
    assert [table.table for table in asked] == ["t1", "t2", "t3"]
    assert {*shown.tables} == {1, 3}
    visible = shown.column("entry") == Entry.ROWS
    assert shown.column("table_id")[visible].tolist() == [1, 3]
