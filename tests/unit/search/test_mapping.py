"""Mappings and settings: derived from fields, and replaced by what the user gives."""

from typing import Any

import pytest

from penstock.errors import ConfigurationError
from penstock.search import FieldKind, IndexLayout
from penstock.search.fields import check_fields, check_same_fields
from penstock.search.mapping import build_creation_body, read_mapping, read_nested

FIELDS = {
    "type": FieldKind.KEYWORD,
    "name": FieldKind.TEXT,
    "lines.sku": FieldKind.KEYWORD,
    "lines.parts.name": FieldKind.TEXT,
    "serial": FieldKind.UNSIGNED,
}


def properties(layout: IndexLayout | None = None) -> dict[str, Any]:
    return build_creation_body(FIELDS, layout)["mappings"]["properties"]


def test_arrays_of_objects_are_plain_objects_unless_nested() -> None:
    assert "type" not in properties()["lines"]
    layout = IndexLayout(nested=frozenset({"lines", "lines.parts", "tags"}))
    lines = properties(layout)["lines"]
    assert (lines["type"], lines["include_in_root"]) == ("nested", True)
    assert lines["properties"]["sku"]["type"] == "keyword"
    assert lines["properties"]["parts"]["type"] == "nested"
    assert properties(layout)["tags"] == {"type": "nested", "include_in_root": True}
    assert read_nested(build_creation_body(FIELDS, layout)["mappings"]) == {"lines", "lines.parts", "tags"}


def test_a_given_mapping_wins() -> None:
    given: dict[str, Any] = {
        "dynamic": "strict",
        "_meta": {"team": "shop"},
        "properties": {
            "type": {"type": "text"},
            "name": {"analyzer": "german"},
            "lines": {"properties": {"sku": {"type": "wildcard"}, "place": {"type": "geo_point"}}},
            "extra": {"type": "ip"},
        },
    }
    mapping = build_creation_body(FIELDS, IndexLayout(frozenset({"lines"}), given))["mappings"]
    assert (mapping["dynamic"], mapping["_meta"]) == ("strict", {"team": "shop"})
    fields = mapping["properties"]
    assert fields["type"] == {"type": "text"}
    assert fields["name"] == {"type": "text", "analyzer": "german"}
    assert fields["extra"] == {"type": "ip"}
    lines = fields["lines"]
    assert (lines["type"], lines["include_in_root"]) == ("nested", True)
    assert lines["properties"]["sku"] == {"type": "wildcard"}
    assert lines["properties"]["place"] == {"type": "geo_point"}
    assert lines["properties"]["parts"] == {"properties": {"name": {"type": "text"}}}
    assert read_mapping(mapping) == {
        "type": "text",
        "name": "text",
        "lines.sku": "keyword",
        "lines.place": "geo_point",
        "lines.parts.name": "text",
        "serial": "unsigned",
        "extra": "ip",
    }


def test_a_given_object_replaces_a_field_and_a_given_field_an_object() -> None:
    given = {"properties": {"name": {"properties": {"de": {"type": "text"}}}, "lines": {"type": "flattened"}}}
    fields = properties(IndexLayout(mapping=given))
    assert fields["name"] == {"properties": {"de": {"type": "text"}}}
    assert fields["lines"] == {"type": "flattened"}


@pytest.mark.parametrize(
    "given",
    [
        {"gc_deletes": "2h"},
        {"index": {"gc_deletes": "2h"}},
        {"index.gc_deletes": "2h"},
        {"index": {"gc_deletes": "2h", "number_of_shards": 3}},
    ],
)
def test_given_settings_win_however_they_are_spelled(given: dict[str, Any]) -> None:
    settings = build_creation_body({}, IndexLayout(settings=given))["settings"]
    assert settings.pop("index.gc_deletes") == "2h"
    assert settings in ({}, {"index.number_of_shards": 3})


def test_settings_may_be_deep_and_have_lists() -> None:
    given = {"analysis": {"analyzer": {"de": {"type": "custom", "filter": ["lowercase"]}}}}
    assert build_creation_body({}, IndexLayout(settings=given))["settings"] == {
        "index.gc_deletes": "1h",
        "index.analysis.analyzer.de.type": "custom",
        "index.analysis.analyzer.de.filter": ["lowercase"],
    }


def test_unsigned_integers_are_keywords_where_there_is_no_type_for_them() -> None:
    fields = build_creation_body(FIELDS, has_unsigned=False)["mappings"]["properties"]
    assert fields["serial"]["type"] == "keyword"


@pytest.mark.parametrize(
    ("declared", "present", "is_taken"),
    [
        ("unsigned", "unsigned", True),
        ("unsigned", "integer", True),
        ("unsigned", "keyword", True),
        ("unsigned", "text", False),
        ("integer", "unsigned", True),
        ("integer", "keyword", False),
        ("geo_point", "geo_point", True),
    ],
)
def test_an_index_may_have_a_kind_that_takes_the_values(declared: str, present: str, is_taken: bool) -> None:
    if is_taken:
        check_same_fields({"a": declared}, {"a": present}, "here")
    else:
        with pytest.raises(ConfigurationError, match=f"'a' is {present}, declared {declared}"):
            check_same_fields({"a": declared}, {"a": present}, "here")


@pytest.mark.parametrize(("objects", "name"), [(["name"], "name"), (["name.x"], "name"), (["a b"], "a b")])
def test_a_nested_path_is_no_field(objects: list[str], name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"'{name}'"):
        check_fields(FIELDS, objects)
    check_fields(FIELDS, ["lines", "lines.parts", "other"])
