"""What somebody typed into a search box, understood without knowing which index answers.

Invariant: every text gives a question. Nothing a user types raises, here or in the index that gets the question.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.search.index import FieldKind
from penstock.search.value import canonical_search_text

MAX_CHARS = 1000
MAX_WORDS = 32  # an index has a limit on clauses; a search box never needs more

_PIECE = re.compile(r'(?:[^\s":]+:)?"[^"]*"?|\S+')


@dataclass(frozen=True, slots=True)
class SearchWord:
    """Text that must be found in a TEXT field: in the field that is named, or in any."""

    text: str
    field: str | None = None


@dataclass(frozen=True, slots=True)
class ExactMatch:
    """A field that is not TEXT, and the canonical value it must have."""

    field: str
    value: str


@dataclass(frozen=True, slots=True)
class SearchQuestion:
    """The content of a search box: all words and all exact values must match; the last word also matches as a
    prefix.
    """

    words: tuple[SearchWord, ...] = ()
    exact: tuple[ExactMatch, ...] = ()
    impossible: bool = False

    @property
    def is_everything(self) -> bool:
        """Tell whether the question matches every document."""
        return not (self.words or self.exact or self.impossible)


def parse_question(text: str, fields: Mapping[str, FieldKind]) -> SearchQuestion:
    """Parse the text of a search box. Signs without a letter or digit are ignored beside words; alone they find
    nothing.
    """
    clean = text[:MAX_CHARS].encode("utf-8", "replace").decode("utf-8")
    words: list[SearchWord] = []
    exact: list[ExactMatch] = []
    impossible = False
    pieces = _PIECE.findall(clean)
    for piece in pieces[:MAX_WORDS]:
        name, colon, rest = piece.partition(":")
        kind = fields.get(name) if colon else None
        value = rest.strip('"')
        if kind is None or not value:
            words += _split_words(piece)
        elif kind is FieldKind.TEXT:
            words += _split_words(value, name)
        elif (canonical := canonical_search_text(kind, value)) is not None:
            exact.append(ExactMatch(name, canonical))
        else:
            impossible = True
    if pieces and not words and not exact:
        impossible = True
    return SearchQuestion(tuple(words[:MAX_WORDS]), tuple(exact), impossible)


def _split_words(text: str, field: str | None = None) -> list[SearchWord]:
    """Return the words of a text."""
    return [SearchWord(word, field) for word in text.replace('"', " ").split() if any(map(str.isalnum, word))]
