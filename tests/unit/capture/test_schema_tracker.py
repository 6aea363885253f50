"""The tables of a log without names, by its DDL: any statements, blocks cut anywhere, followed again from anywhere."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.binlog.events.table_map import table_name
from penstock.capture.schema_tracker import SchemaTracker
from penstock.errors import SchemaError
from penstock.model import Column, Position, TableName, TableSchema, WireType
from penstock.schema.catalogue import Catalogue
from penstock.schema.history import SchemaHistory
from tests.twins import event as ev
from tests.twins.feed import START, read
from tests.twins.log import LogWriter
from tests.twins.row import INSERT, table_map
from tests.twins.strategy import examples
from tests.twins.table_map_fields import without_fields

SHOP = Catalogue().apply("CREATE DATABASE shop").catalogue
NAMES = ("a", "b", "c")
Names = tuple[str, ...]


@dataclass
class DdlLog:
    """A log, and what its tables are: their columns, or None where nobody can know."""

    log: LogWriter = field(default_factory=lambda: LogWriter(is_mariadb=False).open())
    tables: dict[str, Names | None] = field(default_factory=dict[str, Names | None])
    real: dict[str, Names] = field(default_factory=dict[str, Names])
    ids: dict[str, int] = field(default_factory=dict[str, int])
    rows: dict[int, tuple[str, Names | None]] = field(default_factory=dict[int, tuple[str, Names | None]])
    number: int = 100

    def statement(self, text: str, *changed: str) -> None:
        self.log.statement(text)
        for name in changed:
            self.number += 1
            self.ids[name] = self.number

    def create(self, name: str, columns: Names) -> None:
        self.statement(f"CREATE TABLE {name} ({', '.join(f'{column} INT' for column in columns)})", name)
        self.tables[name] = self.real[name] = columns

    def alter(self, name: str, text: str, columns: Names) -> None:
        self.statement(f"ALTER TABLE {name} {text}", name)
        self.tables[name] = columns if self.tables[name] is not None else None
        self.real[name] = columns

    def puzzle(self, name: str) -> None:
        """With a statement that only the server understands."""
        self.statement(f"ALTER TABLE {name} FROBNICATE", name)
        self.tables[name] = None

    def drop(self, name: str) -> None:
        self.statement(f"DROP TABLE {name}")
        del self.tables[name], self.real[name], self.ids[name]

    def rename(self, *pairs: tuple[str, str]) -> None:
        self.statement("RENAME TABLE " + ", ".join(f"{old} TO {new}" for old, new in pairs))
        for old, new in pairs:
            self.tables[new], self.real[new] = self.tables.pop(old), self.real.pop(old)
            del self.ids[old]
            self.number += 1
            self.ids[new] = self.number

    def insert(self, *names: str, has_names: bool = False) -> None:
        self.log.begin()
        for name in names:
            table = TableSchema(
                TableName("shop", name), tuple(Column(column, WireType.LONG) for column in self.real[name])
            )
            body = table_map(self.ids[name], table, is_mariadb=False)
            self.log.add(ev.TABLE_MAP, body if has_names else without_fields(body, set(range(14))))
            self.rows[self.log.position] = name, table_names(table) if has_names else self.tables[name]
            self.log.rows(INSERT, self.ids[name], table, [[1] * len(table.columns)])
        self.log.commit()


def table_names(table: TableSchema) -> Names:
    return tuple(column.name for column in table.columns)


@st.composite
def ddl_logs(draw: st.DrawFn) -> DdlLog:
    ddl_log = DdlLog()
    columns = st.lists(st.sampled_from("xyzuvw"), min_size=1, max_size=3, unique=True).map(tuple)
    for _ in range(draw(st.integers(1, 14))):
        there = sorted(ddl_log.real)
        free = sorted({*NAMES} - ddl_log.real.keys())
        if free and (not there or draw(st.integers(0, 3)) == 0):
            ddl_log.create(draw(st.sampled_from(free)), draw(columns))
            continue
        name = draw(st.sampled_from(there))
        own = ddl_log.real[name]
        match draw(
            st.sampled_from(("insert", "insert", "insert", "add", "change", "puzzle", "drop", "rename", "swap"))
        ):
            case "insert":
                ddl_log.insert(*draw(st.lists(st.sampled_from(there), min_size=1, max_size=2, unique=True)))
            case "add":
                ddl_log.alter(
                    name, f"ADD COLUMN n{len(own)}{ddl_log.number} INT FIRST", (f"n{len(own)}{ddl_log.number}", *own)
                )
            case "change":
                ddl_log.alter(name, f"CHANGE {own[0]} m{ddl_log.number} INT", (f"m{ddl_log.number}", *own[1:]))
            case "puzzle":
                ddl_log.puzzle(name)
            case "drop":
                ddl_log.drop(name)
            case "rename" if free:
                ddl_log.rename((name, free[0]))
            case "swap" if len(there) > 1:
                other = next(each for each in there if each != name)
                ddl_log.rename((name, "tmp"), (other, name), ("tmp", other))
            case _:
                pass
    return ddl_log


def check(log: DdlLog, blocks: Sequence[Block]) -> None:
    """Every rows event has the names of its time, or an error that names the table."""
    for block in blocks:
        for position, entry, number in zip(
            *(block.column(name).tolist() for name in ("position", "entry", "table_id")), strict=True
        ):
            if entry != Entry.ROWS:
                continue
            name, columns = log.rows[position]
            assert table_name(block.tables[number]).table == name
            if columns is None:
                assert number in block.problems
                with pytest.raises(SchemaError, match=rf"table shop\.{name} looks like is not known since this .*FROB"):
                    block.schema_of(number)
            else:
                assert table_names(block.schema_of(number)) == columns


def opened(folder: Path) -> SchemaTracker:
    return SchemaTracker(SchemaHistory(folder, lambda: (START, SHOP), snapshot_every=3))


@examples(150)
@given(ddl_logs(), st.lists(st.integers(20, 900), max_size=12), st.data())
def test_names_are_those_of_their_time(log: DdlLog, sizes: list[int], data: st.DataObject) -> None:
    blocks = read(log.log, sizes)
    positions = [START, *(block.end_of_event(int(i)) for block in blocks for i in block.boundaries)]
    with TemporaryDirectory() as name:
        tables = opened(Path(name))
        check(log, [tables.follow(block) for block in blocks])
        last = dict(log.rows.values())
        gone = {table for table in last if table not in log.tables}
        unknown = {table.table for table in tables.stopped_tables}
        assert {table for table, columns in last.items() if columns is None and table not in gone} >= unknown - gone
        tables.close()
        again = data.draw(st.sampled_from(positions))
        tables = opened(Path(name))
        parts = [block.between(again, block.end) for block in blocks if block.end > again]
        check(log, [tables.follow(part) for part in parts])
        check(log, [tables.complete(block) for block in blocks])
        tables.close()


@examples(60)
@given(ddl_logs(), st.data())
def test_a_crash_in_the_middle_costs_nothing(log: DdlLog, data: st.DataObject) -> None:
    blocks = read(log.log, [300] * 40)
    with TemporaryDirectory() as name:
        done = 0
        while done < len(blocks):
            tables = opened(Path(name))
            stop = data.draw(st.integers(done + 1, len(blocks)))
            check(log, [tables.follow(block) for block in blocks[done:stop]])
            tables.close()
            if stop == len(blocks):
                break
            done = data.draw(st.integers(done, stop))


def small_log() -> DdlLog:
    log = DdlLog()
    log.create("a", ("x", "y"))
    log.insert("a")
    return log


def test_what_is_known_leaves_the_events_as_they_are(tmp_path: Path) -> None:
    (block,) = read(small_log().log)
    tables = opened(tmp_path)
    followed = tables.follow(block)
    assert followed.data is block.data
    assert followed.checksum == block.checksum
    assert followed.problems == {}
    (number,) = followed.tables
    assert followed.tables[number].startswith(block.tables[number])
    assert tables.follow(followed) is followed  # it has names now
    assert tables.follow(block).tables == followed.tables
    tables.close()


def test_full_metadata_wins(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = DdlLog()
    log.create("a", ("x", "y"))
    log.real["a"] = ("x", "z")
    for _ in range(3):
        log.insert("a", has_names=True)
    (block,) = read(log.log)
    tables = opened(tmp_path)
    with caplog.at_level(logging.WARNING):
        assert tables.follow(block) is block
        assert tables.follow(block) is block
    assert tables.differences == {TableName("shop", "a"): "column y has the name z in the log, y in the history"}
    assert len(caplog.records) == 1
    check(log, [block])
    tables.close()


def test_a_shape_that_does_not_fit_stops_the_table(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = small_log()
    log.real["a"] = ("x", "y", "z")
    log.ids["a"] = 300
    log.insert("a")
    log.create("b", ("u",))
    log.insert("b")
    (block,) = read(log.log)
    tables = opened(tmp_path)
    with caplog.at_level(logging.WARNING):
        followed = tables.follow(block)
    assert {*followed.problems} == {300}
    words = (
        r"binlog.000001:\d+ WRITE_ROWS_V1 of table id 300: table shop.a is not what the schema history says: 3 columns"
    )
    with pytest.raises(SchemaError, match=words):
        followed.schema_of(300)
    assert [str(name) for name in tables.stopped_tables] == ["shop.a"]
    assert followed.select_tables({TableName("shop", "b")}).problems == {}
    assert followed.select_tables({TableName("shop", "a")}).problems == followed.problems
    assert (
        Block.from_description(followed.encode_description(), followed.data, followed.index).problems
        == followed.problems
    )
    assert b"problems" not in block.encode_description()
    tables.close()


def test_before_the_history_only_names_count(tmp_path: Path) -> None:
    log = small_log()
    log.alter("a", "CHANGE x q INT", ("q", "y"))
    (block,) = read(log.log)
    later = replace(block.end, offset=block.end.offset)
    tables = SchemaTracker(SchemaHistory(tmp_path, lambda: (later, SHOP)))
    followed = tables.follow(block)
    (number,) = followed.tables
    with pytest.raises(SchemaError, match=r"begins at .*; what the tables were at .* is not known"):
        followed.schema_of(number)
    named = DdlLog()
    named.create("a", ("x",))
    named.insert("a", has_names=True)
    (block,) = read(named.log)
    assert tables.follow(block) is block
    tables.close()


def test_what_is_known_later_counts_from_there_on(tmp_path: Path) -> None:
    log = small_log()
    log.puzzle("a")
    log.insert("a")
    offset = log.log.position
    log.tables["a"] = ("x", "y")
    log.insert("a")
    log.alter("a", "CHANGE x q INT", ("q", "y"))
    log.insert("a")
    later = SHOP.apply("CREATE TABLE a (x INT, y INT)", "shop").catalogue
    for sizes in ([], [100] * 30):
        with TemporaryDirectory() as name:
            history = SchemaHistory(Path(name), lambda: (START, SHOP))
            tables = SchemaTracker(history, (Position(START.file, offset), later))
            blocks = read(log.log, sizes)
            followed = [tables.follow(block) for block in blocks]
            # The id is that of the rows before: one block has one shape for it.
            assert len(followed) == 1 or check(log, followed) is None
            assert table_names(history.catalogue.schema_of(TableName("shop", "a"))) == ("q", "y")
            tables.close()


def test_statements_about_databases_that_are_not_known_stop_nothing(tmp_path: Path) -> None:
    log = small_log()
    for text in ("ALTER DATABASE nobody CHARACTER SET latin1", "CREATE DATABASE shop", "DROP DATABASE nobody"):
        log.statement(text)
    log.statement("CREATE TABLE nobody.t (a INT)")
    log.insert("a")
    (block,) = read(log.log)
    tables = opened(tmp_path)
    check(log, [tables.follow(block)])
    tables.close()


def test_a_statement_of_which_no_table_can_be_told_stops_all(tmp_path: Path) -> None:
    log = small_log()
    log.statement("ALTER TABLE 'nonsense'")
    (block,) = read(log.log)
    tables = opened(tmp_path)
    with pytest.raises(SchemaError, match=r"binlog.000001:\d+: .*ALTER TABLE 'nonsense'"):
        tables.follow(block)
    tables.close()
