"""Logs with rows, statements, notes and marks of several tables, and what each event is."""

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from penstock.binlog.events.block import Block
from penstock.binlog.events.reader import BlockReader
from penstock.model import Column, GtidSet, TableName, TableSchema, WireType
from tests.twins import event as ev
from tests.twins.feed import START, feed
from tests.twins.filter import Event
from tests.twins.log import LogWriter
from tests.twins.row import DELETE, INSERT, UPDATE

NAMES = ("shop.a", "shop.b", "crm.a", "shop._a_gho")
TABLES = {
    number: TableSchema(TableName.parse(name), (Column("id", WireType.LONG, nullable=False),), ("id",))
    for number, name in enumerate(NAMES, 7)
}
_CHANGES = {"insert": INSERT, "update": UPDATE, "delete": DELETE}
STATEMENTS: list[tuple[str, str, tuple[str, ...]]] = [
    ("ALTER TABLE a ADD COLUMN x INT", "ddl", ("shop.a",)),
    ("ALTER TABLE _a_gho RENAME TO crm.a", "ddl", ("shop._a_gho", "crm.a")),
    ("/* it */ create table crm.a (id int)", "ddl", ("crm.a",)),
    ("CREATE TABLE _a_gho LIKE a", "ddl", ("shop._a_gho",)),
    ("DROP TABLE `b`, crm.`a`", "ddl", ("shop.b", "crm.a")),
    ("RENAME TABLE a TO _a_del, _a_gho TO a", "ddl", ("shop.a", "shop._a_del", "shop._a_gho")),
    ("TRUNCATE b", "ddl", ("shop.b",)),
    ("CREATE UNIQUE INDEX k ON b (id)", "ddl", ("shop.b",)),
    ("ALTER TABLE b FROBNICATE", "ddl", ("shop.b",)),
    ("CREATE DATABASE other", "ddl", ()),
    ("CREATE VIEW crm.v AS SELECT 1", "ddl", ("crm.v",)),
    ("GRANT SELECT ON shop.b TO somebody", "dcl", ()),
    ("ANALYZE TABLE b", "query", ("shop.b",)),
    ("SET DEFAULT ROLE r FOR u", "dcl", ()),
    ("CREATE PROCEDURE p() DELETE FROM b", "ddl", ()),
    ("CREATE TRIGGER r AFTER INSERT ON b FOR EACH ROW SET @a = 1", "ddl", ("shop.b",)),
    ("XA COMMIT X'61',X'',1", "outcome", ()),
]
_INSIDE: list[tuple[str, str, tuple[str, ...]]] = [
    ("SAVEPOINT `s`", "frame", ()),
    ("rollback to `s`", "frame", ()),
    ("INSERT INTO b VALUES (1)", "query", ("shop.b",)),
    ("update b join crm.a x on x.id = b.id set x.id = 2", "query", ("crm.a",)),
    ("DELETE FROM crm.a WHERE id IN (SELECT id FROM b)", "query", ("crm.a",)),
    ("SELECT f(1)", "query", ()),
    ("CREATE TABLE b (id INT) START TRANSACTION", "ddl", ("shop.b",)),
]


@dataclass
class FilterLog:
    """`events` by their position."""

    log: LogWriter
    events: dict[int, Event] = field(default_factory=dict[int, Event])
    number: int = 0

    def note(self, before: int, role: str, tables: tuple[str, ...] = (), *, is_boundary: bool = False) -> None:
        """The events that were written since that position."""
        at = before
        while at < self.log.position:
            offset = len(self.log.data) - (self.log.position - at)
            size = int.from_bytes(self.log.data[offset + 9 : offset + 13], "little")
            is_last = at + size == self.log.position
            self.events[at] = Event(at, role, self.number, tables, is_boundary and is_last)
            at += size

    def begin(self, *, is_standalone: bool = False) -> None:
        self.number += 1
        at = self.log.position
        self.log.begin(is_standalone=is_standalone)
        if self.log.is_mariadb or is_standalone:
            self.note(at, "frame" if is_standalone else "mark")
            return
        self.note(at, "frame")
        begin = max(self.events)
        self.events[begin] = Event(begin, "mark", self.number)

    def map(self, *ids: int) -> None:
        for number in ids:
            at = self.log.position
            self.log.map(number, TABLES[number])
            self.note(at, "map", (str(TABLES[number].name),))

    def rows(self, number: int, kind: str) -> None:
        at = self.log.position
        images = [[1], [2]] if kind == "update" else [[3]]
        self.log.rows(_CHANGES[kind], number, TABLES[number], images)
        self.note(at, kind, (str(TABLES[number].name),))

    def text(self) -> None:
        at = self.log.position
        if self.log.is_mariadb:
            self.log.add(ev.MARIADB_ANNOTATE, b"INSERT INTO t VALUES (3)")
        else:
            self.log.add(29, b"\x18INSERT INTO t VALUES (3)")
        self.note(at, "note")

    def inside(self, statement: tuple[str, str, tuple[str, ...]]) -> None:
        at, (text, role, tables) = self.log.position, statement
        self.log.add(ev.QUERY, ev.query(text.encode()))
        self.note(at, role, tables)

    def commit(self, *, with_query: bool) -> None:
        at = self.log.position
        self.log.commit(with_query=with_query)
        self.note(at, "mark", is_boundary=True)

    def statement(self, statement: tuple[str, str, tuple[str, ...]]) -> None:
        text, role, tables = statement
        self.begin(is_standalone=True)
        at = self.log.position
        self.log.add(ev.QUERY, ev.query(text.encode()))
        self.note(at, role, tables, is_boundary=True)

    def position_only(self) -> None:
        self.number += 1
        at = self.log.position
        if self.log.is_mariadb:
            self.log.add(ev.MARIADB_CHECKPOINT, (13).to_bytes(4, "little") + b"binlog.000001")
        else:
            self.log.add(ev.PREVIOUS_GTIDS, bytes(8))
        self.note(at, "frame", is_boundary=True)


@st.composite
def filter_logs(draw: st.DrawFn, most: int = 8) -> FilterLog:
    filter_log = FilterLog(LogWriter(is_mariadb=draw(st.booleans())).open())
    for _ in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(("rows", "rows", "rows", "statement", "position")))
        if kind == "position":
            filter_log.position_only()
        elif kind == "statement":
            filter_log.statement(draw(st.sampled_from(STATEMENTS)))
        else:
            filter_log.begin()
            for _ in range(draw(st.integers(0, 4))):
                if draw(st.booleans()):
                    filter_log.text()
                if draw(st.integers(0, 3)) == 0:
                    filter_log.inside(draw(st.sampled_from(_INSIDE)))
                    continue
                ids = draw(st.lists(st.sampled_from(sorted(TABLES)), min_size=1, max_size=2, unique=True))
                filter_log.map(*ids)
                for number in ids:
                    filter_log.rows(number, draw(st.sampled_from(sorted(_CHANGES))))
            filter_log.commit(with_query=draw(st.booleans()))
    return filter_log


def blocks_of(log: FilterLog, sizes: list[int]) -> list[Block]:
    reader = BlockReader(replace(START, gtids=GtidSet({})))
    reader.expect_checksum(is_on=True)
    return list(feed(reader, bytes(log.log.data), sizes))
