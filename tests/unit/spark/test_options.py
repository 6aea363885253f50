"""Options of the source, without Spark running."""

import pytest

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
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        ReadOptions.of(options)
