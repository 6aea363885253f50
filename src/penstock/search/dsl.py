"""A question of the search box in the query language that Elasticsearch and OpenSearch share.

Invariant: only queries of the core are used (no scripts, no plugins), and values are already canonical, so that the
server has nothing to refuse.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.search.index import FieldKind
from penstock.search.question import SearchQuestion, SearchWord


def build_query(question: SearchQuestion, fields: Mapping[str, FieldKind]) -> dict[str, Any]:
    """Return the `query` of a search request."""
    texts = [name for name, kind in fields.items() if kind is FieldKind.TEXT]
    if question.is_everything:
        return {"match_all": {}}
    if question.impossible or (question.words and not texts):
        return {"match_none": {}}
    last = len(question.words) - 1
    return {
        "bool": {
            "must": [_word_query(word, texts, prefix=number == last) for number, word in enumerate(question.words)],
            "filter": [{"term": {term.field: {"value": term.value}}} for term in question.exact],
        }
    }


def _word_query(word: SearchWord, texts: Sequence[str], *, prefix: bool) -> dict[str, Any]:
    """Return the query for one word, in one TEXT field or in any."""
    match: dict[str, Any] = {
        "query": word.text,
        "fields": [word.field] if word.field else list(texts),
        "operator": "and",
    }
    whole: dict[str, Any] = {"multi_match": {**match, "type": "cross_fields"}}
    if not prefix:
        return whole
    return {"bool": {"should": [whole, {"multi_match": {**match, "type": "bool_prefix"}}], "minimum_should_match": 1}}
