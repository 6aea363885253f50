"""Options of the source, without Spark running."""

import pytest

from penstock.client import EmbeddedSource, ServerAddress
from penstock.errors import ConfigurationError
from penstock.model import TableName
from penstock.spark.options import ReadOptions, struct_names


def test_names_are_case_insensitive_as_in_spark() -> None:
    options = ReadOptions.of({"SERVER": "h:1", "Table": "a.b", "startingposition": "earliest", "PollMs": "7"})
    assert options.tables == (TableName("a", "b"),)
    assert options.is_flat
    assert options.poll_ms == 7
    assert options.partial_json == "error"


def test_columns_of_several_tables_are_told_apart() -> None:
    options = ReadOptions.of({"server": "h:1", "tables": "a.t, b.t, a.u", "columns": "a_t.x, b_t.y, u.z"})
    names = struct_names(options.tables)
    assert list(names.values()) == ["a_t", "b_t", "u"]
    assert [options.columns_of(table) for table in options.tables] == [["x"], ["y"], ["z"]]


@pytest.mark.parametrize(
    "options",
    [
        {"table": "a.b"},
        {"server": "h:1"},
        {"server": "h:1", "table": "a.b", "tables": "a.b"},
        {"server": "h:1", "table": "ab"},
        {"server": "h:1", "table": "a.b", "partialJson": "null"},
        {"server": "h:1", "table": "a.b", "typo": "1"},
        {"server": "h:1", "table": "a.b", "startingPosition": "binlog:4"},
        {"server": "h:1", "table": "a.b", "maxBytesPerTrigger": "many"},
        {"server": "h:1", "table": "a.b", "maxRowsPerTrigger": "0"},
        {"server": "h:1", "table": "a.b", "includeDdl": "true"},
        {"server": "h:1", "filter": "a.*", "includeDdl": "maybe"},
        {"server": "h:1", "filter": "a.*", "columns": "id"},
        {"server": "h:1", "filter": "a.*", "table": "a.b"},
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        ReadOptions.of(options)


@pytest.mark.parametrize(
    ("start", "moves"),
    [
        ("earliest", False),
        ("latest", True),
        ("binlog.000007:4", False),
        ("gtid:0-1-8", False),
        ("time:-10m", True),
        ("2026-11-15 10:00", False),
        ('{"epoch": 1, "file": "binlog.000007", "offset": 4}', False),
    ],
)
def test_a_start_is_written_as_everywhere(start: str, moves: bool) -> None:
    options = ReadOptions.of({"server": "h:1", "table": "a.b", "startingPosition": start})
    assert options.starting_position == start
    assert options.starts_elsewhere_each_time is moves


def test_the_former_word_for_a_start_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(ConfigurationError, match="did you mean earliest"):
        ReadOptions.of({"server": "h:1", "table": "a.b", "startingPosition": "first"})


@pytest.mark.parametrize("text", [" latest ", "LATEST", "Earliest"])
def test_a_starting_word_is_the_same_in_capitals_and_between_blanks(text: str) -> None:
    options = ReadOptions.of({"server": "h:1", "table": "a.b", "startingPosition": text})
    assert options.starting_position == text.strip().lower()


@pytest.mark.parametrize("text", ["yesterday", "{}", '{"file": 7', "binlog:x"])
def test_a_start_that_is_none_is_said_with_the_name_of_its_option(text: str) -> None:
    with pytest.raises(ConfigurationError, match="endingPosition: "):
        ReadOptions.of({"server": "h:1", "table": "a.b", "endingPosition": text})


def test_a_misspelled_option_is_said_with_the_one_that_was_meant() -> None:
    with pytest.raises(ConfigurationError, match=r"unknown option startingoffset: did you mean startingPosition\?"):
        ReadOptions.of({"server": "h:1", "table": "a.b", "startingOffset": "earliest"})


def test_rows_are_counted_as_the_query_sees_them() -> None:
    given = {"server": "h:1", "maxRowsPerTrigger": "10"}
    typed, generic = ReadOptions.of({**given, "table": "a.b"}), ReadOptions.of({**given, "filter": "a\\..*"})
    assert typed.limit == {"max_rows": 10, "rows_per_update": 2, "tables": ["a.b"]}
    assert generic.limit == {"max_rows": 10, "rows_per_update": 1, "filter": "a\\..*"}


def test_a_token_is_in_no_text_of_the_options() -> None:
    assert "s3cret" not in repr(ReadOptions.of({"server": "h:1", "table": "a.b", "token": "s3cret"}))


def test_servers_are_named_or_found_by_zookeeper() -> None:
    named = ReadOptions.of({"server": "a:1, grpc+tls://b:2", "table": "a.b"}).server
    assert isinstance(named, ServerAddress)
    assert named.urls == ("grpc://a:1", "grpc+tls://b:2")
    looked_up = ReadOptions.of({"zookeeper": "zk1:2181/prod", "table": "a.b"}).server
    assert isinstance(looked_up, ServerAddress)
    assert looked_up.zookeeper == "zk1:2181/prod"
    with pytest.raises(ConfigurationError, match="given: server, zookeeper"):
        ReadOptions.of({"zookeeper": "zk1:2181", "server": "a:1", "table": "a.b"})
    with pytest.raises(ConfigurationError, match="not a ZooKeeper address"):
        ReadOptions.of({"zookeeper": "zk1:port", "table": "a.b"})


def test_a_database_or_a_folder_of_logs_is_captured_without_a_server() -> None:
    read = ReadOptions.of({"host": "db1", "user": "penstock", "password": "hush", "table": "a.b", "stateDir": "/s"})
    assert isinstance(read.server, EmbeddedSource)
    assert read.server.settings == {
        "host": "db1", "port": 3306, "user": "penstock", "password": "hush", "tls": "preferred",
    }  # fmt: skip
    assert "hush" not in repr(read)
    assert "hush" not in str(read.server.folder)
    other = ReadOptions.of({"host": "db1", "user": "penstock", "password": "other", "table": "a.b", "stateDir": "/s"})
    assert isinstance(other.server, EmbeddedSource)
    assert other.server.folder != read.server.folder  # a password is checked by the database itself
    folder = ReadOptions.of({"path": "/logs", "filter": ".*"})
    assert isinstance(folder.server, EmbeddedSource)
    assert folder.server.settings == {"path": "/logs"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "given: none of them"),
        ({"host": "db1", "server": "a:1"}, "given: server, host"),
        ({"host": "db1", "token": "t"}, "token goes with server or zookeeper, not with host"),
        ({"host": "db1", "destination": "shop"}, "destination goes with server"),
        ({"server": "a:1", "password": "p"}, "password goes with host, not with server"),
        ({"server": "a:1", "stateDir": "/s"}, "stateDir goes with host or path"),
        ({"host": "db1", "tls": "yes"}, "tls is one of disabled"),
        ({"host": "db1", "tlsCa": "/ca.pem"}, "goes with tls verify-ca"),
        ({"host": "db1", "port": "70000"}, "port must be"),
    ],
)
def test_options_of_one_way_to_the_log_are_refused_with_another(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ReadOptions.of({**options, "table": "a.b"})


@pytest.mark.parametrize(
    ("tables", "columns", "words"),
    [
        ("a.t,a.u", "t.x,typo.y", "typo.y is of none of the `tables`"),
        ("a.t,a.u", "t.x", "no `columns` of u are chosen"),
        ("a.t,b.t,c.a_t", "", "structs of one name"),
    ],
)
def test_columns_of_several_tables_must_name_each_of_them(tables: str, columns: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        ReadOptions.of({"server": "h:1", "tables": tables, "columns": columns})
