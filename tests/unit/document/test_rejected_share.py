"""Documents that an index refuses are kept as dead letters, until nearly all of the recent ones are refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.document.outcome import LEAST_REJECTED, DeadLetterOutcome
from penstock.errors import SinkRejectedError
from penstock.search.dead_letters import DeadLetters
from penstock.search.index import Rejection


@pytest.fixture
def letters(tmp_path: Path) -> Iterator[DeadLetters]:
    with DeadLetters.open(tmp_path / "letters.sqlite") as opened:
        yield opened


def refusals(first: int, count: int) -> tuple[dict[str, int], list[Rejection]]:
    names = [str(number) for number in range(first, first + count)]
    return dict.fromkeys(names, 7), [Rejection(name, "no number", 7, None, "{}") for name in names]


def test_a_few_refused_documents_stop_nothing(letters: DeadLetters) -> None:
    DeadLetterOutcome("product", letters).record(*refusals(0, LEAST_REJECTED - 1))
    assert letters.count("product") == LEAST_REJECTED - 1


def test_when_most_are_refused_it_stops_and_has_kept_them(letters: DeadLetters) -> None:
    outcome = DeadLetterOutcome("product", letters)
    outcome.record(*refusals(0, LEAST_REJECTED - 1))
    with pytest.raises(SinkRejectedError, match="index 'product' refuses nearly everything: 100 of the last 100"):
        outcome.record(*refusals(1000, 1))
    assert letters.count("product") == LEAST_REJECTED


def test_many_refused_among_many_more_stop_nothing(letters: DeadLetters) -> None:
    outcome = DeadLetterOutcome("product", letters)
    outcome.record(dict.fromkeys(map(str, range(5000, 5000 + 2 * LEAST_REJECTED)), 7), [])
    outcome.record(*refusals(0, LEAST_REJECTED))
    assert letters.count("product") == LEAST_REJECTED


def test_one_document_that_is_refused_again_and_again_stops_nothing(letters: DeadLetters) -> None:
    outcome = DeadLetterOutcome("product", letters)
    for version in range(3 * LEAST_REJECTED):
        outcome.record({"7": version}, [Rejection("7", "no number", version, None, "{}")])
    assert letters.count("product") == 1
