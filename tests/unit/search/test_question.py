"""The search box, read without an index."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.search.question import MAX_WORDS, ExactMatch, SearchQuestion, SearchWord, parse_question
from tests.support.search_contract import FIELDS


def test_words_values_and_fields() -> None:
    text = 'red sku:"LA-1 x" name:desk stock:007 added:2024-03-01 unknown:thing "a b"'
    assert parse_question(text, FIELDS) == SearchQuestion(
        words=(
            SearchWord("red"),
            SearchWord("desk", "name"),
            SearchWord("unknown:thing"),
            SearchWord("a"),
            SearchWord("b"),
        ),
        exact=(ExactMatch("sku", "LA-1 x"), ExactMatch("stock", "7"), ExactMatch("added", "2024-03-01")),
    )


def test_nothing_asks_for_everything_and_signs_for_nothing() -> None:
    assert parse_question(" \t\n", FIELDS).is_everything
    for text in ("!?", '"', "stock:x"):
        question = parse_question(text, FIELDS)
        assert question.impossible
        assert not question.is_everything


@given(st.text(max_size=2000) | st.text('a "', min_size=200) | st.text(':" sku:stockadn\ud800', max_size=60))
def test_every_text_is_understood(text: str) -> None:
    question = parse_question(text, FIELDS)
    assert max(len(question.words), len(question.exact)) <= MAX_WORDS
    for word in question.words:
        word.text.encode()
        assert word.field is None or word.field in FIELDS
    for term in question.exact:
        (term.field + term.value).encode()
