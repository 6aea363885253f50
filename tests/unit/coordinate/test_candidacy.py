"""Who may try for a destination without a running server, and when: the whole table, without ZooKeeper."""

import math
from dataclasses import replace

import pytest

from penstock.coordinate.candidacy import Candidacy, Vacancy, earliest_attempt, judge_vacancy
from penstock.coordinate.term import Term

SINCE, DELAY_S = 100.0, 1.0
OURS, THEIRS = 7, 8  # sessions
US = Candidacy("a:1", frozenset({OURS, 5}), SINCE, balancing_delay_s=0.25)
BY_US, BY_THEM = Term(3, "a:1", OURS), Term(3, "b:1", THEIRS)

CASES = {
    "nobody has had it": (US, Vacancy.FREE, SINCE + 0.25),
    "another has released it": (replace(US, last_term=replace(BY_THEM, is_released=True)), Vacancy.FREE, SINCE + 0.25),
    "one that lives has released it": (
        replace(US, last_term=replace(BY_THEM, is_released=True), is_winner_alive=True),
        Vacancy.FREE,
        SINCE + 0.25,
    ),
    "our node was removed": (replace(US, last_term=BY_US), Vacancy.OWN, SINCE),
    "we had it in a session that we lost": (replace(US, last_term=Term(3, "a:1", 5)), Vacancy.OWN, SINCE),
    "the node of another that lives was removed": (
        replace(US, last_term=BY_THEM, is_winner_alive=True),
        Vacancy.REMOVED,
        math.inf,
    ),
    "the node of another process with our address was removed": (
        replace(US, last_term=Term(3, "a:1", THEIRS), is_winner_alive=True),
        Vacancy.REMOVED,
        math.inf,
    ),
    "we crashed and were started again": (
        replace(US, last_term=Term(3, "a:1", THEIRS)),
        Vacancy.RESTARTED,
        SINCE,
    ),
    "another crashed": (replace(US, last_term=BY_THEM), Vacancy.CRASHED, SINCE + DELAY_S + 0.25),
    "it failed here a moment ago": (replace(US, last_term=BY_US, backoff_until=130.0), Vacancy.OWN, 130.0),
    "it failed here long ago": (replace(US, last_term=BY_THEM, backoff_until=90.0), Vacancy.CRASHED, SINCE + 1.25),
    "it failed here, and nobody may try": (
        replace(US, last_term=BY_THEM, is_winner_alive=True, backoff_until=130.0),
        Vacancy.REMOVED,
        math.inf,
    ),
    "we released it to others": (
        replace(US, last_term=replace(BY_US, is_released=True), own_epoch=3, has_rivals=True, grace_until=110.0),
        Vacancy.FREE,
        110.0,
    ),
    "we released it, and are alone": (
        replace(US, last_term=replace(BY_US, is_released=True), own_epoch=3, grace_until=110.0),
        Vacancy.FREE,
        SINCE + 0.25,
    ),
    "we released it, and another has had it since": (
        replace(US, last_term=replace(BY_THEM, epoch=4), own_epoch=3, has_rivals=True, grace_until=110.0),
        Vacancy.CRASHED,
        SINCE + 1.25,
    ),
    "we released it because it failed here": (
        replace(
            US,
            last_term=replace(BY_US, is_released=True),
            own_epoch=3,
            has_rivals=True,
            grace_until=110.0,
            backoff_until=120.0,
        ),
        Vacancy.FREE,
        120.0,
    ),
    "we released it, and the grace is over": (
        replace(US, last_term=replace(BY_US, is_released=True), own_epoch=3, has_rivals=True, grace_until=99.0),
        Vacancy.FREE,
        SINCE + 0.25,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_who_may_try_and_when(name: str) -> None:
    candidacy, vacancy, due = CASES[name]
    assert judge_vacancy(candidacy) is vacancy
    assert earliest_attempt(candidacy, DELAY_S) == pytest.approx(due)


def test_each_reason_is_in_the_table() -> None:
    assert {vacancy for _, vacancy, _ in CASES.values()} == set(Vacancy)
