"""Values by path and by kind."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.search import FieldKind
from penstock.search.value import (
    MAX_KEYWORD_CHARS,
    canonical_search_text,
    canonical_text,
    exact_term,
    exact_terms,
    values_at,
)


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("a", [1]),
        ("b.c", ["x", "y", "z"]),
        ("b.d", [2]),
        ("e", [1, 2, 3]),
        ("f", []),
        ("g", []),
        ("a.x", []),
        ("e.x", []),
    ],
)
def test_a_path_goes_through_objects_and_lists(path: str, values: list[Any]) -> None:
    document = {"a": 1, "b": [{"c": "x"}, {"c": ["y", "z"], "d": 2}, None], "e": [1, [2, None], 3], "f": None}
    assert list(values_at(document, path)) == values


def test_an_object_is_no_value() -> None:
    with pytest.raises(ValueError, match="'a' is an object"):
        list(values_at({"a": [1, {"b": 2}]}, "a"))


@pytest.mark.parametrize(
    ("kind", "spellings", "text"),
    [
        (FieldKind.INTEGER, [7, 7.0, "7", " 7 ", "7.9", "7e0", "007"], "7"),
        (FieldKind.INTEGER, [-(2**63), "-9223372036854775808"], "-9223372036854775808"),
        (FieldKind.UNSIGNED, [2**64 - 1, "18446744073709551615"], "18446744073709551615"),
        (FieldKind.UNSIGNED, [0, "0", "007e-3"], "0"),
        (FieldKind.FLOAT, [7, 7.0, "7", "7.0", "70e-1"], "7.0"),
        (FieldKind.FLOAT, [0, -0.0, "-0"], "0.0"),
        (FieldKind.BOOLEAN, [True, "true"], "true"),
        (FieldKind.BOOLEAN, [False, "false", ""], "false"),
        (FieldKind.DATE, ["2024-03-01T10:00:00Z", "2024-03-01 10:00:00", "2024-03-01T12:00:00+02:00", 1709287200000],
         "2024-03-01T10:00:00"),
        (FieldKind.DATE, ["2024-03-01"], "2024-03-01T00:00:00"),
        (FieldKind.KEYWORD, ["x Y"], "x Y"),
        (FieldKind.KEYWORD, [True], "true"),
        (FieldKind.TEXT, [1.5], "1.5"),
    ],
)  # fmt: skip
def test_spellings_of_a_value_are_one_text(kind: FieldKind, spellings: list[Any], text: str) -> None:
    assert {canonical_text(kind, value) for value in spellings} == {text}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (FieldKind.INTEGER, [True, "x", "", math.nan, math.inf, 2**63, "1e999999999", "-1e999999999", "snan"]),
        (FieldKind.UNSIGNED, [True, "x", "", math.nan, -1, 2**64, "1e999999999"]),
        (FieldKind.FLOAT, [True, "x", "", math.nan, "inf", "1e400", 10**400]),
        (FieldKind.BOOLEAN, [0, 1, "yes", "True"]),
        (FieldKind.DATE, [True, "x", "", "0000-00-00", "2024-02-30", 10**30, math.nan]),
    ],
)
def test_what_a_kind_does_not_take_is_refused(kind: FieldKind, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(ValueError, match=r"is not|is out of|is neither"):
            canonical_text(kind, value)


@given(st.sampled_from(FieldKind), st.text() | st.text("0123456789.-+eETZ: ", max_size=30))
def test_whatever_is_typed_finds_what_is_stored_alike(kind: FieldKind, text: str) -> None:
    value = canonical_search_text(kind, text)
    if value is not None:
        assert exact_term("f", value) in set(exact_terms("f", kind, text))


def test_a_day_finds_every_moment_of_it() -> None:
    assert exact_term("f", canonical_search_text(FieldKind.DATE, "2024-03-01") or "") in set(
        exact_terms("f", FieldKind.DATE, "2024-03-01 10:20:30.123456")
    )


def test_a_keyword_too_long_for_a_term_is_not_searchable() -> None:
    assert list(exact_terms("f", FieldKind.KEYWORD, "x" * MAX_KEYWORD_CHARS))
    assert not list(exact_terms("f", FieldKind.KEYWORD, "x" * (MAX_KEYWORD_CHARS + 1)))
