"""How documents, deletes and questions look inside a tantivy index.

Invariant: whatever is not full text is one raw term in `_exact`. Each indexed field costs every commit a dictionary of
its own, so there are as few as possible, and versions and tombstones are fast fields without one.

    _id          raw term, stored
    _version     fast
    _deleted_at  fast, seconds of the index's own time, which only rises; only a tombstone has it
    _source      stored, the document as it came
    _routing     stored, kept for whoever asks: there are no shards to route to
    _slice       fast, a hash of the id: ranges of it divide the documents into pages
    _exact       raw terms `path=value`
    text_0 …     one per TEXT field, in the order of their names
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast
from zlib import crc32

from penstock.errors import MissingExtraError
from penstock.search import _json
from penstock.search.index import FieldKind
from penstock.search.question import SearchQuestion
from penstock.search.value import canonical_search_text, canonical_text, exact_term, exact_terms, values_at

try:
    import tantivy
    from tantivy import Filter, Occur, Query, TextAnalyzerBuilder, Tokenizer
except ImportError as error:
    raise MissingExtraError.for_extra("embedded", "the embedded search index") from error

_ANALYZER = "penstock"
_MAX_TOKEN_BYTES = 100
_SLICES = 2**32  # as many as there are hashes
# Words as Unicode sees them; Han and Hiragana are not divided by spaces, so each sign is a word.
_WORD = r"[\p{Han}\p{Hiragana}]|[\p{Alphabetic}\p{N}\p{M}--[\p{Han}\p{Hiragana}]]+"


class TantivySchema:
    """The tantivy schema of declared fields, and the translation of documents and questions into it."""

    def __init__(self, fields: Mapping[str, FieldKind]) -> None:
        texts = sorted(path for path, kind in fields.items() if kind is FieldKind.TEXT)
        self._texts = {path: f"text_{number}" for number, path in enumerate(texts)}
        self._exact = {path: kind for path, kind in fields.items() if kind is not FieldKind.TEXT}
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("_id", stored=True, tokenizer_name="raw", index_option="basic")
        builder.add_integer_field("_version", fast=True)
        builder.add_integer_field("_deleted_at", fast=True)
        builder.add_bytes_field("_source", stored=True)
        builder.add_bytes_field("_routing", stored=True)
        builder.add_integer_field("_slice", fast=True)
        builder.add_text_field("_exact", tokenizer_name="raw", index_option="basic")
        for name in self._texts.values():
            builder.add_text_field(name, tokenizer_name=_ANALYZER, index_option="freq")
        self.schema = builder.build()
        self._analyzer = (
            TextAnalyzerBuilder(Tokenizer.regex(_WORD))
            .filter(Filter.remove_long(_MAX_TOKEN_BYTES))
            .filter(Filter.lowercase())
            .filter(Filter.ascii_fold())
            .build()
        )

    def register(self, index: tantivy.Index) -> None:
        """Give an opened index the analyzer that its schema names, and a reader that reloads when told."""
        index.register_tokenizer(_ANALYZER, self._analyzer)
        index.config_reader("manual")

    def build_document(self, key: str, version: int, text: str, routing: str | None = None) -> tantivy.Document:
        """Return a document to add; ValueError says why it cannot be one."""
        try:
            parsed: Any = _json.loads(text)
        except _json.JSONDecodeError as error:
            raise ValueError(f"the document is not JSON: {error}") from error
        if not isinstance(parsed, dict):
            raise ValueError("the document is not a JSON object")  # noqa: TRY004 - the document's fault
        source = cast("dict[str, Any]", parsed)
        stored: dict[str, Any] = {"_id": key, "_version": version, "_source": text.encode()}
        stored["_slice"] = crc32(key.encode())
        if routing is not None:
            stored["_routing"] = routing.encode()
        stored["_exact"] = [
            term
            for path, kind in self._exact.items()
            for value in values_at(source, path)
            for term in _exact_terms(path, kind, value)
        ]
        for path, name in self._texts.items():
            if values := [canonical_text(FieldKind.TEXT, value) for value in values_at(source, path)]:
                stored[name] = values
        return self._stored_document(stored)

    def build_tombstone(self, key: str, version: int, now_s: int) -> tantivy.Document:
        """Return what stays of a deleted document, so that an older write finds a newer version."""
        return self._stored_document({"_id": key, "_version": version, "_deleted_at": now_s})

    def query_ids(self, keys: list[str]) -> Query:
        """Return the query for documents with these ids."""
        if len(keys) == 1:  # a set makes a dictionary of its terms first
            return Query.term_query(self.schema, "_id", keys[0], index_option="basic")
        return Query.term_set_query(self.schema, "_id", keys)

    def query_tombstones(self) -> Query:
        """Return the query for all tombstones."""
        return Query.exists_query("_deleted_at")

    def query_tombstones_until(self, moment_s: int) -> Query:
        """Return the query for tombstones that are at least this old."""
        return Query.range_query(self.schema, "_deleted_at", tantivy.FieldType.Integer, None, moment_s)

    def query_both(self, first: Query, second: Query) -> Query:
        """Return the query for documents that meet both conditions."""
        return Query.boolean_query([(Occur.Must, first), (Occur.Must, second)])

    def query_living(self, *conditions: Query) -> Query:
        """Return the query for documents that are not deleted and meet all conditions."""
        musts = conditions or (Query.all_query(),)
        return Query.boolean_query(
            [*((Occur.Must, query) for query in musts), (Occur.MustNot, self.query_tombstones())]
        )

    def query_values(self, path: str, kind: FieldKind, values: Sequence[str]) -> Query:
        """Return the query for documents whose field, which is not TEXT, has one of these values."""
        texts = (canonical_search_text(kind, value) for value in values)
        terms = [exact_term(path, text) for text in texts if text is not None]
        return Query.term_set_query(self.schema, "_exact", terms) if terms else Query.empty_query()

    def query_slice(self, part: int, parts: int) -> Query:
        """Return the query for one of several parts of about the same size into which the index is divided."""
        first, end = ((part + side) * _SLICES // parts for side in (0, 1))
        return Query.range_query(self.schema, "_slice", tantivy.FieldType.Integer, first, end, include_upper=False)

    def query_question(self, question: SearchQuestion) -> Query:
        """Return the query for a question of the search box; what matches in more fields, or more rarely, scores
        higher.
        """
        if question.impossible:
            return Query.empty_query()
        conditions = [self._query_exact(exact_term(term.field, term.value)) for term in question.exact]
        tokens = [(token, word.field) for word in question.words for token in self._analyzer.analyze(word.text)]
        if question.words and not tokens:
            return Query.empty_query()
        conditions += [
            self._query_token(token, field, prefix=number == len(tokens) - 1)
            for number, (token, field) in enumerate(tokens)
        ]
        return self.query_living(*conditions)

    def _query_exact(self, term: str) -> Query:
        """Return the query for one exact term."""
        return Query.const_score_query(Query.term_query(self.schema, "_exact", term, index_option="basic"), 0.0)

    def _stored_document(self, values: dict[str, Any]) -> tantivy.Document:
        """Return a tantivy document of these values."""
        return tantivy.Document.from_dict(values, self.schema)

    def _query_token(self, token: str, field: str | None, *, prefix: bool) -> Query:
        """Return the query for one word, in one TEXT field or in any."""
        names = [self._texts[field]] if field else list(self._texts.values())
        ways = [Query.term_query(self.schema, name, token, index_option="freq") for name in names]
        if prefix:
            # A distance of 0 leaves of the fuzzy query the prefix; the phrase query's prefix stops at 50 terms.
            ways += [Query.fuzzy_term_query(self.schema, name, token, distance=0, prefix=True) for name in names]
        return Query.boolean_query([(Occur.Should, way) for way in ways])


def _exact_terms(path: str, kind: FieldKind, value: Any) -> list[str]:
    """Return the exact terms of a field's value."""
    try:
        return list(exact_terms(path, kind, value))
    except ValueError as error:
        raise ValueError(f"field '{path}' is declared {kind}: {error}") from error
