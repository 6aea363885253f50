"""Dates that no calendar has, beside Python's calendar."""

from datetime import date

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.document.impossible_dates import find_impossible_dates
from tests.twins.strategy import examples

DAYS = st.builds("{:04}-{:02}-{:02}".format, st.integers(0, 9999), st.integers(0, 12), st.integers(0, 31))
CLOCKS = st.sampled_from(["", " 00:00:00", "T12:34:56.123", " 23:59:59.999999"])


def is_possible(text: str) -> bool:
    try:
        date.fromisoformat(text[:10])
    except ValueError:
        return False
    return True


@given(st.lists(st.one_of(st.none(), st.tuples(DAYS, CLOCKS).map("".join)), max_size=20), st.integers(0, 3))
@examples(300)
def test_a_date_is_impossible_when_no_calendar_has_it(values: list[str | None], first: int) -> None:
    for kind in (pa.string(), pa.large_string()):
        array = pa.array(values, kind).slice(first)
        expected = [value is not None and not is_possible(value) for value in values[first:]]
        assert find_impossible_dates(array).tolist() == expected


@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [
        ("2024-02-29", False),
        ("2000-02-29", False),
        ("1900-02-29", True),
        ("2023-02-29", True),
        ("2024-02-30", True),
        ("2024-04-31", True),
        ("2024-12-31", False),
        ("2024-00-01", True),
        ("2024-01-00", True),
        ("0000-00-00 00:00:00", True),
        ("0000-01-01", True),
        ("9999-12-31", False),
        ("", False),
        ("12:34", False),
    ],
)
def test_days_at_the_ends_of_months(text: str, is_wrong: bool) -> None:
    assert find_impossible_dates(pa.array([text])).tolist() == [is_wrong]
