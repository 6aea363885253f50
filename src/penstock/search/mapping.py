"""Declared fields as the mapping of an Elasticsearch or OpenSearch index, and back.

Invariant: a mapping is explicit (`dynamic: false`): a field nobody declared is kept in the document, is not searchable,
and never changes the index by its mere presence. What the user gives, mapping or settings, wins.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from penstock.search.index import FieldKind, IndexLayout
from penstock.search.value import MAX_KEYWORD_CHARS

# Deletes are remembered this long: an older write that arrives later is refused. A replay must end within it.
GC_DELETES = "1h"

_SPECS: dict[FieldKind, dict[str, Any]] = {
    FieldKind.TEXT: {"type": "text"},
    FieldKind.KEYWORD: {"type": "keyword", "ignore_above": MAX_KEYWORD_CHARS},
    FieldKind.INTEGER: {"type": "long"},
    FieldKind.UNSIGNED: {"type": "unsigned_long"},
    FieldKind.FLOAT: {"type": "double"},
    FieldKind.BOOLEAN: {"type": "boolean"},
    FieldKind.DATE: {
        "type": "date",
        "format": "strict_date_optional_time||yyyy-MM-dd HH:mm:ss||yyyy-MM-dd HH:mm:ss.SSSSSS||yyyy-MM-dd HH:mm:ss.SSS"
        "||epoch_millis",
    },
}

# An index that somebody made by hand may use any type that is searched in the same way.
_KINDS: dict[str, FieldKind] = {
    **dict.fromkeys(("text", "match_only_text", "search_as_you_type"), FieldKind.TEXT),
    **dict.fromkeys(("keyword", "constant_keyword", "wildcard"), FieldKind.KEYWORD),
    **dict.fromkeys(("long", "integer", "short", "byte"), FieldKind.INTEGER),
    "unsigned_long": FieldKind.UNSIGNED,
    **dict.fromkeys(("double", "float", "half_float", "scaled_float"), FieldKind.FLOAT),
    "boolean": FieldKind.BOOLEAN,
    **dict.fromkeys(("date", "date_nanos"), FieldKind.DATE),
}
_OBJECTS = frozenset({"object", "nested"})
# So that a query that knows nothing of nested objects, such as a search box, finds their documents too.
_NESTED: dict[str, Any] = {"type": "nested", "include_in_root": True}


def build_creation_body(
    fields: Mapping[str, FieldKind], layout: IndexLayout | None = None, *, has_unsigned: bool = True
) -> dict[str, Any]:
    """Return the JSON body of the HTTP request that creates an Elasticsearch or OpenSearch index with these fields.
    Unless `has_unsigned`, unsigned integers are keywords.
    """
    given = layout or IndexLayout()
    properties: dict[str, Any] = {}
    for path in sorted(given.nested):
        _find_level(properties, path).update(_NESTED)
    for path, kind in fields.items():
        spec = _SPECS[FieldKind.KEYWORD if kind is FieldKind.UNSIGNED and not has_unsigned else kind]
        _find_level(properties, path).update(spec)
    return {
        "settings": {"index.gc_deletes": GC_DELETES, **_flatten_settings(given.settings)},
        "mappings": _merge_mapping({"dynamic": False, "properties": properties}, given.mapping),
    }


def _find_level(properties: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the definition at a path, with the objects above it."""
    first, *rest = path.split(".")
    level: dict[str, Any] = properties.setdefault(first, {})
    for step in rest:
        level = level.setdefault("properties", {}).setdefault(step, {})
    return level


def _merge_mapping(derived: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping, or the definition of an object in it, in which the given parts win."""
    merged = {**derived, **given}
    if "properties" in derived and "properties" in given:
        fields: dict[str, Any] = dict(derived["properties"])
        for name, spec in given["properties"].items():
            fields[name] = _merge_field(fields.get(name, {}), spec)
        merged["properties"] = fields
    return merged


def _merge_field(derived: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition of a field: a given one with a type replaces the derived one, without a type it completes
    it; objects are merged.
    """
    is_object = given.get("type") in _OBJECTS or "properties" in given
    if is_object and "properties" in derived:
        return _merge_mapping(derived, given)
    if is_object or "type" in given:
        return dict(given)
    return {**derived, **given}


def _flatten_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by their full names, so that each spelling of one replaces the same default."""
    return {
        name if name.startswith("index.") else f"index.{name}": value for name, value in _walk_settings(settings, "")
    }


def _walk_settings(settings: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield the dotted names and the values of nested settings."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _walk_settings(cast("Mapping[str, Any]", value), f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def read_mapping(mapping: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return the kind of each field in the mapping of an Elasticsearch or OpenSearch index, by path; for a type that is
    no FieldKind, the type itself."""
    kinds: dict[str, str] = {}
    properties = cast("dict[str, dict[str, Any]]", mapping.get("properties") or {})
    for name, spec in properties.items():
        own = str(spec.get("type", "object"))
        if own in _OBJECTS:
            kinds |= read_mapping(spec, f"{prefix}{name}.") or {f"{prefix}{name}": own}
        else:
            kinds[f"{prefix}{name}"] = _KINDS.get(own, own)
    return kinds


def read_nested(mapping: Mapping[str, Any], prefix: str = "") -> set[str]:
    """Return the paths of a mapping whose objects are nested."""
    paths: set[str] = set()
    properties = cast("dict[str, dict[str, Any]]", mapping.get("properties") or {})
    for name, spec in properties.items():
        if spec.get("type") == "nested":
            paths.add(f"{prefix}{name}")
        paths |= read_nested(spec, f"{prefix}{name}.")
    return paths
