"""Declared fields as the mapping of an Elasticsearch or OpenSearch index, and back.

Invariant: a mapping is explicit (`dynamic: false`): a field nobody declared is kept in the document, is not searchable,
and never changes the index by its mere presence.
"""

from collections.abc import Mapping
from typing import Any, cast

from penstock.search.index import FieldKind
from penstock.search.value import MAX_KEYWORD_CHARS

# Deletes are remembered this long: an older write that arrives later is refused. A replay must end within it.
GC_DELETES = "1h"

_SPECS: dict[FieldKind, dict[str, Any]] = {
    FieldKind.TEXT: {"type": "text"},
    FieldKind.KEYWORD: {"type": "keyword", "ignore_above": MAX_KEYWORD_CHARS},
    FieldKind.INTEGER: {"type": "long"},
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
    **dict.fromkeys(("long", "integer", "short", "byte", "unsigned_long"), FieldKind.INTEGER),
    **dict.fromkeys(("double", "float", "half_float", "scaled_float"), FieldKind.FLOAT),
    "boolean": FieldKind.BOOLEAN,
    **dict.fromkeys(("date", "date_nanos"), FieldKind.DATE),
}


def build_creation_body(fields: Mapping[str, FieldKind]) -> dict[str, Any]:
    """Return the JSON body of the HTTP request that creates an Elasticsearch or OpenSearch index with these fields."""
    properties: dict[str, Any] = {}
    for path, kind in fields.items():
        *parents, name = path.split(".")
        level = properties
        for parent in parents:
            level = level.setdefault(parent, {}).setdefault("properties", {})
        level[name] = dict(_SPECS[kind])
    return {
        "settings": {"index": {"gc_deletes": GC_DELETES}},
        "mappings": {"dynamic": False, "properties": properties},
    }


def read_mapping(mapping: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return the kind of each field in the mapping of an Elasticsearch or OpenSearch index, by path; for a type that is
    no FieldKind, the type itself."""
    kinds: dict[str, str] = {}
    properties = cast("dict[str, dict[str, Any]]", mapping.get("properties") or {})
    for name, spec in properties.items():
        if "properties" in spec:
            kinds |= read_mapping(spec, f"{prefix}{name}.")
        else:
            own = str(spec.get("type", "object"))
            kinds[f"{prefix}{name}"] = _KINDS.get(own, own)
    return kinds
