"""`help(PenstockDataSource)`, for people in a notebook."""

import pydoc
import re

from penstock.binlog.rows.fields import CHANGE_FIELDS
from penstock.render.json_change_fields import json_change_fields
from penstock.spark.options import OPTIONS, ReadOptions
from penstock.spark.source import PenstockDataSource


def test_help_shows_the_schema_the_options_and_an_example() -> None:
    text = pydoc.plain(pydoc.render_doc(PenstockDataSource))
    for field in CHANGE_FIELDS:
        assert f"`{field.name}`" in text
    for name in ("_table", "before", "after"):
        assert name in json_change_fields(include_ddl=False).names
        assert f"`{name}`" in text
    for option in OPTIONS:
        assert f"{option.name}: {option.meaning} ({option.modes}" in text
        assert not option.default or f"default {option.default}" in text
    assert 'spark.readStream.format("penstock")' in text
    example = dict(re.findall(r'\.option\("(\w+)", "([^"]+)"\)', text))
    assert ReadOptions.of(example).is_flat


def test_the_columns_of_a_filter_are_those_that_help_names() -> None:
    text = " ".join((PenstockDataSource.__doc__ or "").split())
    assert "A `filter` has one row per change, with `_table`, the key as a map" in text
    assert {"_table", "_key", "before", "after"} <= {*json_change_fields(include_ddl=False).names}
