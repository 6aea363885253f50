"""The index that a user names: a URL of Elasticsearch or OpenSearch, or a folder.

Invariant: an optional library is imported only for the product that is named.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.search.index import SearchIndex


def is_http(target: str) -> bool:
    """Tell whether an index is behind a URL; else it is in a folder."""
    return "://" in target


def locate_generation(target: str, name: str, generation: str) -> tuple[str, str]:
    """Return the URL or folder and the name of one generation of an index; the empty one is the index itself."""
    if not generation:
        return target, name
    return (target if is_http(target) else f"{target.rstrip('/')}-{generation}"), f"{name}-{generation}"


def open_index(target: str, name: str, **settings: Any) -> "SearchIndex":
    """Return the index `name` at a URL, or the one in a folder, which has no name; who opens it closes it.

    `settings` are those of `HttpIndex.open`; a folder has none of them.
    """
    if is_http(target):
        from penstock.search.http import HttpIndex  # noqa: PLC0415 - needs the extra `search`

        return HttpIndex.open(target, name, **settings)
    from penstock.search.embedded import EmbeddedIndex  # noqa: PLC0415 - needs the extra `embedded`

    return EmbeddedIndex.open(target)
