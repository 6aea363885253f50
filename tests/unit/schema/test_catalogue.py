"""The model of databases and tables; what real servers make of hundreds of statements is in tests/integration."""

import pickle
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from penstock.errors import SchemaError
from penstock.model import TableName, WireType
from penstock.schema.catalogue import AppliedStatement, Catalogue
from penstock.schema.ddl import DdlError
from penstock.schema.dialect import ServerProfile, SqlMode, SqlSession
from penstock.schema.shape import TableDefinition
from penstock.schema.shared_map import SharedMap

A, B, T = TableName("d", "a"), TableName("d", "b"), TableName("d", "t")
MARIADB = ServerProfile(is_mariadb=True, version=101106)


GHOST_LOG = """create /* gh-ost */ table `d`.`_t_ghc` (
    id bigint unsigned auto_increment,
    last_update timestamp not null DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
    hint varchar(64) charset ascii not null, value varchar(4096) charset ascii not null, primary key(id),
    unique key hint_uidx(hint)
) auto_increment=256 comment='gh-ost, a log'"""


def after(*statements: str, server: ServerProfile | None = None, session: SqlSession | None = None) -> AppliedStatement:
    catalogue = Catalogue(server or ServerProfile())
    applied = catalogue.apply("CREATE DATABASE d")
    for statement in statements:
        applied = applied.catalogue.apply(statement, "d", session or SqlSession())
    return applied


def names(applied: AppliedStatement, table: TableName = T) -> list[str]:
    return [column.name for column in applied.catalogue.schema_of(table).columns]


def test_a_catalogue_does_not_change() -> None:
    first = after("CREATE TABLE a (x INT)").catalogue
    second = first.apply("ALTER TABLE a ADD y INT", "d").catalogue
    assert [len(each.schema_of(A).columns) for each in (first, second)] == [1, 2]


def test_what_a_statement_did() -> None:
    assert after("CREATE TABLE a (x INT)").created == {A}
    assert after("CREATE TABLE a (x INT)", "ALTER TABLE a ADD y INT").altered == {A}
    assert after("CREATE TABLE a (x INT)", "TRUNCATE a").truncated == {A}
    assert after("CREATE TABLE a (x INT)", "DROP TABLE IF EXISTS a, b").dropped == {A}
    assert after("CREATE TABLE a (x INT)", "DROP DATABASE d").dropped == {A}
    assert after("CREATE TABLE a (x INT)", "RENAME TABLE a TO b").renamed == ((A, B),)
    applied = after("CREATE TABLE a (x INT)", "ALTER TABLE a ADD y INT, RENAME TO b")
    assert (applied.altered, applied.renamed) == ({A}, ((A, B),))
    assert not after("INSERT INTO a VALUES (1)").has_changed_tables


def test_swapping_names() -> None:
    applied = after("CREATE TABLE a (x INT)", "CREATE TABLE b (y INT)", "RENAME TABLE a TO c, b TO a, c TO b")
    assert (names(applied, A), names(applied, B)) == (["y"], ["x"])


def test_clauses_are_not_applied_one_after_the_other() -> None:
    create = "CREATE TABLE t (a INT, b INT, c INT)"
    assert names(after(create, "ALTER TABLE t CHANGE a b INT, CHANGE b a INT")) == ["b", "a", "c"]
    assert names(after(create, "ALTER TABLE t DROP a, ADD a INT AFTER c, ADD d INT FIRST")) == ["d", "b", "c", "a"]
    assert names(after(create, "ALTER TABLE t MODIFY a INT AFTER b, MODIFY b INT AFTER c")) == ["a", "c", "b"]


@pytest.mark.parametrize(
    ("case", "names"), [(0, ["A", "a"]), (1, ["a"]), (2, ["A"])], ids=["sensitive", "lower", "insensitive"]
)
def test_case_of_table_names(case: int, names: list[str]) -> None:
    applied = after(
        "CREATE TABLE A (x INT)",
        "CREATE TABLE IF NOT EXISTS a (y INT)",
        server=ServerProfile(lower_case_table_names=case),
    )
    assert [name.table for name in applied.catalogue.table_names()] == names


def test_case_of_column_names() -> None:
    applied = after(
        "CREATE TABLE t (Straße INT, ÉA INT, KEY K (éa))", "ALTER TABLE t DROP KEY k, CHANGE STRAßE s INT, DROP éA"
    )
    assert names(applied) == ["s"]


def test_temporary_tables_are_of_a_session() -> None:
    catalogue = after("CREATE TABLE t (a INT)").catalogue
    first, other = SqlSession(thread=1), SqlSession(thread=2)
    catalogue = catalogue.apply("CREATE TEMPORARY TABLE t (x INT)", "d", first).catalogue
    catalogue = catalogue.apply("ALTER TABLE t ADD y INT", "d", first).catalogue
    catalogue = catalogue.apply("ALTER TABLE t ADD b INT", "d", other).catalogue
    catalogue = catalogue.apply("DROP TABLE t", "d", first).catalogue
    assert [column.name for column in catalogue.schema_of(T).columns] == ["a", "b"]
    assert catalogue.apply("DROP TABLE t", "d", first).dropped == {T}


def test_a_create_or_replace_that_failed_has_dropped_the_table() -> None:
    catalogue = after("CREATE TABLE t (a INT)", server=MARIADB).catalogue
    applied = catalogue.apply("CREATE OR REPLACE TABLE t (a INT, KEY (b))", "d", SqlSession(error=1072))
    assert (applied.dropped, applied.catalogue.table_names()) == ({T}, [])


def test_versioned_tables_have_columns_that_no_catalogue_shows() -> None:
    applied = after(
        "CREATE TABLE t (a INT PRIMARY KEY) WITH SYSTEM VERSIONING", "ALTER TABLE t ADD b INT", server=MARIADB
    )
    assert names(applied) == ["a", "b", "row_start", "row_end"]
    assert applied.catalogue.schema_of(T).key == ("a", "row_end")


def test_long_unique_keys_have_a_hidden_hash() -> None:
    applied = after("CREATE TABLE t (a TEXT UNIQUE, b INT)", server=MARIADB)
    assert names(applied) == ["a", "b", "DB_ROW_HASH_1"]


def test_newer_types_of_mariadb() -> None:
    applied = after(
        "CREATE TABLE t (v VECTOR(3) NOT NULL, VECTOR INDEX (v) M=8 DISTANCE=cosine)",
        server=ServerProfile(True, 110800),
    )
    (column,) = applied.catalogue.schema_of(T).columns
    assert (column.type, column.size, column.declared, column.dimension) == (WireType.VARCHAR, 12, "vector", 3)


def test_sequences_of_a_type() -> None:
    applied = after("CREATE SEQUENCE t AS INT UNSIGNED START WITH 5", server=ServerProfile(True, 110800))
    first = applied.catalogue.schema_of(T).columns[0]
    assert (first.name, first.type, first.unsigned) == ("next_not_cached_value", WireType.LONG, True)


def test_default_collations_by_release() -> None:
    create = "CREATE TABLE t (a TEXT CHARSET utf8mb4, b TEXT CHARSET utf8)"
    collations: list[tuple[str, ...]] = []
    for server in (
        ServerProfile(version=50744),
        ServerProfile(version=80400),
        ServerProfile(True, 101106),
        ServerProfile(True, 110800),
    ):
        table = after(create, server=server).catalogue.find(T)
        assert table is not None
        collations.append(tuple(field.collation for field in table.fields))
    assert collations == [
        ("utf8mb4_general_ci", "utf8mb3_general_ci"),
        ("utf8mb4_0900_ai_ci", "utf8mb3_general_ci"),
        ("utf8mb4_general_ci", "utf8mb3_general_ci"),
        ("utf8mb4_uca1400_ai_ci", "utf8mb3_uca1400_ai_ci"),
    ]


def test_what_a_session_chooses() -> None:
    session = SqlSession(SqlMode.ANSI_QUOTES | SqlMode.REAL_AS_FLOAT, False, "latin1_bin", "utf8mb4_general_ci")
    applied = Catalogue().apply('CREATE DATABASE "d"', "", session)
    assert applied.catalogue.databases["d"].collation == "latin1_bin"
    applied = applied.catalogue.apply('CREATE TABLE "t" ("a" REAL, b TIMESTAMP, c TEXT CHARSET utf8mb4)', "d", session)
    table = applied.catalogue.find(T)
    assert table is not None
    real, moment, text = table.fields
    assert (real.type.kind, moment.is_nullable, text.collation) == ("float", False, "utf8mb4_general_ci")


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("ALTER TABLE t FROBNICATE x", "ALTER TABLE has 'FROBNICATE', which is not known there at character 14"),
        ("ALTER TABLE t ADD x INT WOBBLY", "ALTER TABLE has 'WOBBLY', which is not known there"),
        ("CREATE TABLE u (a INT WOBBLY)", "column a has 'WOBBLY'"),
        ("CREATE TABLE u (a MONEY)", "MONEY is no type that is known"),
        ("CREATE TABLE u (a INT", "has 'nothing'"),
        ("CREATE TABLE u SELECT 1", "only a log in row format says them"),
        ("CREATE TABLE u (a INT) AS SELECT 1", "only a log in row format says them"),
        ("CREATE TABLE u (a TEXT CHARSET klingon)", "charset klingon is not known"),
        ("CREATE TABLE u (a INT, KEY (b))", "there is no column b for a key"),
        ("CREATE TABLE u (a INT, UNIQUE (a, p WITHOUT OVERLAPS))", "there is no period p for a key"),
        ("CREATE TABLE t (a INT)", "table d.t is there already"),
        ("CREATE TABLE other.t (a INT)", "database other is not known"),
        ("CREATE TABLE u LIKE missing", "table d.missing is not known"),
        ("ALTER TABLE missing ADD a INT", "table d.missing is not known"),
        ("ALTER TABLE t DROP missing", "there is no column missing"),
        ("ALTER TABLE t ADD b INT AFTER missing", "there is no column missing to come after"),
        ("ALTER TABLE t DROP KEY missing", "there is no key missing"),
        ("RENAME TABLE missing TO u", "table d.missing is not known"),
        ("DROP TABLE t u", "the end of the statement has 'u'"),
        ("CREATE TABLE u (a VARCHAR(70000))", "too long"),
        ("ALTER TABLE t ADD a ENUM('x", "a quote without an end"),
    ],
)
def test_what_is_not_understood_is_an_error_with_the_statement(statement: str, problem: str) -> None:
    catalogue = after("CREATE TABLE t (a INT)").catalogue
    with pytest.raises(SchemaError) as caught:
        catalogue.apply(statement, "d")
    assert problem in str(caught.value)
    assert isinstance(caught.value, DdlError)
    assert caught.value.statement == statement
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301 - our own


def test_tables_like_others() -> None:
    applied = after("CREATE TABLE a (x INT PRIMARY KEY, y TEXT CHARSET latin1, KEY k (y(3)))", "CREATE TABLE b LIKE a")
    first, second = applied.catalogue.find(A), applied.catalogue.find(B)
    assert first is not None
    assert second is not None
    assert second.with_name(A) == first
    changed = applied.catalogue.apply("ALTER TABLE a DROP y", "d").catalogue
    assert [len(changed.schema_of(name).columns) for name in (A, B)] == [1, 2]


def test_tables_from_a_select_are_logged_with_their_columns() -> None:
    """MySQL marks such a statement, and sends the rows apart."""
    applied = after("CREATE TABLE `t` (\n  `a` int DEFAULT NULL\n) START TRANSACTION")
    assert names(applied) == ["a"]


@pytest.mark.parametrize("case", [1, 2])
def test_names_where_case_does_not_count(case: int) -> None:
    applied = after(
        "CREATE TABLE T (x INT)", "ALTER TABLE t ADD y INT", server=ServerProfile(lower_case_table_names=case)
    )
    catalogue = applied.catalogue
    assert len(catalogue.schema_of(TableName("D", "t")).columns) == 2
    assert [name.table for name in catalogue.table_names()] == ["t" if case == 1 else "T"]
    swapped = catalogue.apply("CREATE TABLE u (z INT)", "D").catalogue.apply("RENAME TABLE t TO x, U TO T, X TO u", "d")
    assert [len(swapped.catalogue.schema_of(TableName("d", name)).columns) for name in ("t", "U")] == [1, 2]
    assert catalogue.apply("DROP TABLE t", "d").catalogue.table_names() == []


def test_temporary_tables_hide_real_ones() -> None:
    catalogue, mine = after("CREATE TABLE a (x INT)").catalogue, SqlSession(thread=7)
    for statement in (
        "CREATE TEMPORARY TABLE a (y TEXT)",
        "ALTER TABLE a ADD z INT, RENAME TO b",
        "CREATE TABLE b (real_one INT)",
        "TRUNCATE b",
        "ALTER TABLE b ADD more INT",
        "CREATE INDEX i ON b (y)",
        "RENAME TABLE b TO c",
    ):
        applied = catalogue.apply(statement, "d", mine)
        assert not applied.truncated
        assert not applied.altered
        catalogue = applied.catalogue
    assert catalogue.table_names() == [A, B]
    assert [len(catalogue.schema_of(name).columns) for name in (A, B)] == [1, 1]
    assert catalogue.temporary == {(7, TableName("d", "c"))}
    assert catalogue.apply("DROP TEMPORARY TABLE c", "d", mine).catalogue.temporary == frozenset()


def test_what_changes_nothing_gives_the_same_catalogue() -> None:
    catalogue = after("CREATE TABLE a (x INT)").catalogue
    for statement in ("TRUNCATE a", "DROP TABLE IF EXISTS z", "CREATE TABLE IF NOT EXISTS a (y INT)", "FLUSH TABLES"):
        assert catalogue.apply(statement, "d").catalogue is catalogue


def test_an_online_schema_change_is_one_swap() -> None:
    """gh-ost's statements: the ghost, its log, the swap, and the end."""
    catalogue = after("CREATE TABLE t (id INT PRIMARY KEY, a INT)").catalogue
    ghost, old = TableName("d", "_t_gho"), TableName("d", "_t_del")
    for statement in (
        "drop /* gh-ost */ table if exists `d`.`_t_gho`",
        GHOST_LOG,
        "create /* gh-ost */ table `d`.`_t_gho` like `d`.`t`",
        "alter /* gh-ost */ table `d`.`_t_gho` add column b int",
    ):
        catalogue = catalogue.apply(statement, "").catalogue
    swapped = catalogue.apply("rename /* gh-ost */ table `d`.`t` to `d`.`_t_del`, `d`.`_t_gho` to `d`.`t`")
    assert swapped.renamed == ((T, old), (ghost, T))
    assert names(swapped) == ["id", "a", "b"]
    ended = swapped.catalogue.apply("DROP TABLE IF EXISTS `d`.`_t_ghc`, `d`.`_t_del` /* generated by server */")
    assert ended.catalogue.table_names() == [T]


@pytest.mark.parametrize(
    ("statement", "unknown"),
    [
        ("ALTER TABLE a FROBNICATE", {A}),
        ("ALTER ONLINE TABLE IF EXISTS `d`.a ADD x WOBBLY", {A}),
        ("CREATE TABLE IF NOT EXISTS new (x WOBBLY)", {TableName("d", "new")}),
        ("CREATE TABLE new LIKE missing", {TableName("d", "new")}),
        ("CREATE WOBBLY INDEX i ON a (x)", {A}),
        ("DROP INDEX missing ON a", {A}),
        ("DROP TABLE a, b WOBBLY", {A, B}),
        ("RENAME TABLE a TO z, missing TO a", {A, TableName("d", "z"), TableName("d", "missing")}),
    ],
)
def test_what_is_not_understood_stops_its_tables_alone(statement: str, unknown: set[TableName]) -> None:
    catalogue = after("CREATE TABLE a (x INT)", "CREATE TABLE b (x INT)").catalogue
    applied = catalogue.apply_or_skip(statement, "d")
    assert applied.unknown == unknown
    assert applied.catalogue.table_names() == sorted({A, B} - unknown)
    for name in unknown:
        with pytest.raises(SchemaError, match="is not known since this statement"):
            applied.catalogue.schema_of(name)


def test_a_table_is_known_again_when_it_is_created_again() -> None:
    catalogue = after("CREATE TABLE a (x INT)", "CREATE TABLE b (x INT)").catalogue.apply_or_skip(
        "ALTER TABLE a WOBBLE", "d"
    )
    steps = [
        ("ALTER TABLE a ADD y INT", {"a"}, {"b"}),
        ("CREATE TABLE IF NOT EXISTS a (z INT)", {"a"}, {"b"}),
        ("RENAME TABLE a TO c, b TO a", {"c"}, {"a"}),
        ("ALTER TABLE IF EXISTS c ADD y INT", {"c"}, {"a"}),
        ("CREATE TABLE like_c LIKE c", {"c", "like_c"}, {"a"}),
        ("DROP TABLE c", {"like_c"}, {"a"}),
        ("CREATE TABLE c (x INT)", {"like_c"}, {"a", "c"}),
        ("CREATE OR REPLACE TABLE like_c (x INT)", set[str](), {"a", "c", "like_c"}),
    ]
    now = catalogue.catalogue
    for statement, unknown, known in steps:
        now = now.apply_or_skip(statement, "d").catalogue
        assert set(now.databases["d"].unknown) == unknown, statement
        assert {name.table for name in now.table_names()} == known, statement


def test_ten_thousand_tables_take_no_longer_than_one() -> None:
    catalogue = after("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20))").catalogue
    table = catalogue.find(T)
    assert table is not None
    tables = ((f"t{i}", table.with_name(TableName("d", f"t{i}"))) for i in range(10_000))
    database = replace(catalogue.databases["d"], tables=SharedMap[TableDefinition].from_items(tables))
    many = replace(catalogue, databases=catalogue.databases.with_item("d", database))
    statement = "ALTER TABLE t77 ADD COLUMN x INT NOT NULL DEFAULT 0 AFTER id, ADD KEY (x), MODIFY name VARCHAR(30)"
    best = min(_seconds(lambda: many.apply(statement, "d")) for _ in range(30))
    assert best < 0.001
    changed = many.apply(statement, "d").catalogue
    assert changed.find(TableName("d", "t78")) is many.find(TableName("d", "t78"))


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def test_a_table_that_is_not_there() -> None:
    with pytest.raises(SchemaError, match=r"there is no table d\.t"):
        after().catalogue.schema_of(T)
