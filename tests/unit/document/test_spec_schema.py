"""The JSON Schema for editors accepts what a spec may be, and marks what it may not."""

import json
import re
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from penstock.cli import app
from penstock.config.yaml_file import _Loader  # pyright: ignore[reportPrivateUsage]
from penstock.document import DocumentSpec
from penstock.document.spec_schema import build_spec_schema
from tests.support.shop.specs import INDEXES, spec_texts

_TYPES: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool,
    "null": type(None),
}  # fmt: skip


def is_valid(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:  # noqa: PLR0911 - by kind of value
    """Return whether a value is valid, for the keywords that the schema of a spec has."""
    known = {
        "$ref", "anyOf", "type", "enum", "pattern", "minLength", "minimum", "minItems", "minProperties", "items",
        "properties", "required", "additionalProperties", "description", "default", "title", "$defs",
    }  # fmt: skip
    assert schema.keys() <= known
    if "$ref" in schema:
        return is_valid(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root)
    if "anyOf" in schema:
        return any(is_valid(value, part, root) for part in schema["anyOf"])
    kind = schema.get("type")
    is_number = kind in ("integer", "number")
    if kind and (not isinstance(value, _TYPES[kind]) or (is_number and isinstance(value, bool))):
        return False
    if isinstance(value, dict):
        return _is_valid_object(value, schema, root)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, list):
        items = schema.get("items", {})
        return len(value) >= schema.get("minItems", 0) and all(is_valid(item, items, root) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, str):
        is_long = len(value) >= schema.get("minLength", 0)
        return is_long and bool(re.search(schema.get("pattern", ""), value)) and value in schema.get("enum", [value])
    return value is None or value >= schema.get("minimum", value)


def _is_valid_object(value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any]) -> bool:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    if len(value) < schema.get("minProperties", 0) or not set(schema.get("required", ())) <= value.keys():
        return False
    if others is False and not value.keys() <= properties.keys():
        return False
    rest = others if isinstance(others, dict) else {}
    return all(is_valid(part, properties.get(name, rest), root) for name, part in value.items())


def read(text: str) -> Any:
    return yaml.load(text, _Loader)  # noqa: S506 - a safe loader


@pytest.mark.parametrize("index", INDEXES)
def test_the_schema_accepts_every_kind_of_document(index: str) -> None:
    raw, schema = read(spec_texts("shop")[index]), build_spec_schema()
    DocumentSpec.model_validate(raw)
    assert is_valid(raw, schema, schema)


ROOT = {"table": "shop.product", "fields": ["name"]}
JOIN = {"table": "shop.store", "fields": ["name"], "on": {"store_id": "id"}}


@pytest.mark.parametrize(
    ("part", "is_right"),
    [
        ({"id": "id"}, True),
        ({"id": ["a", "b"]}, True),
        ({"id": 1}, False),
        ({"where": "a > 1"}, True),
        ({"where": {"a": 1, "b": ["x", "y"], "c": True}}, True),
        ({"where": {"a": []}}, False),
        ({"fields": {"a": "b", "c": {"value": 1}, "d": {"column": "x", "type": "date"}}}, True),
        ({"fields": ["a", {"b": "c"}, {"d": {"sql": "1"}}]}, True),
        ({"fields": []}, False),
        ({"fields": {"a": {"type": "colour", "column": "a"}}}, False),
        ({"joins": {"store": JOIN | {"many": True, "order": "name", "limit": 3, "nested": True}}}, True),
        ({"joins": {"store": JOIN | {"many": True, "limit": 0}}}, False),
        ({"joins": {"store": JOIN | {"onn": {}}}}, False),
    ],
)
def test_the_schema_agrees_with_the_models(part: dict[str, Any], is_right: bool) -> None:
    raw, schema = {"index": "product", "root": ROOT | part}, build_spec_schema()
    assert is_valid(raw, schema, schema) == is_right
    if is_right:
        DocumentSpec.model_validate(raw)
    else:
        with pytest.raises(ValueError, match="validation error"):
            DocumentSpec.model_validate(raw)


@pytest.mark.parametrize(
    ("transform", "is_right"),
    [
        (None, True),
        ("json:dumps", True),
        ({"python": "json:dumps"}, True),
        ({"python": "json:dumps", "fields": {"a": "float", "b.c": "date"}}, True),
        ({"fields": {"a": "float"}}, False),
        ({"python": ["json:dumps"]}, False),
        ({"python": "json:dumps", "fields": {"a": "colour"}}, False),
        ({"python": "json:dumps", "field": {}}, False),
    ],
)
def test_the_schema_knows_transforms(transform: Any, is_right: bool) -> None:
    raw, schema = {"index": "product", "root": ROOT, "transform": transform}, build_spec_schema()
    assert is_valid(raw, schema, schema) == is_right
    if is_right:
        DocumentSpec.model_validate(raw)
    else:
        with pytest.raises(ValueError, match="validation error"):
            DocumentSpec.model_validate(raw)


def test_the_command_prints_a_schema_in_which_every_key_is_described() -> None:
    result = CliRunner().invoke(app, ["index", "schema"])
    assert result.exit_code == 0, result.output
    schema = json.loads(result.stdout)
    assert schema == build_spec_schema()
    models = [schema, *(part for part in schema["$defs"].values() if "properties" in part)]
    assert len(models) == 6
    keys = {name: key for model in models for name, key in model["properties"].items()}
    assert {"index", "where", "through", "soft_delete", "sql", "transform", "python"} <= keys.keys()
    assert [name for name, key in keys.items() if "description" not in key] == []
