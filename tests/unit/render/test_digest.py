"""Digests of texts, beside what plain Python computes."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.render.digest import digest_texts
from tests.twins.digest import digest
from tests.twins.strategy import examples


@given(st.lists(st.one_of(st.none(), st.binary(max_size=40)), max_size=20), st.integers(0, 3))
@examples(200)
def test_kernels_digest_as_python_does(values: list[bytes | None], first: int) -> None:
    array = pa.array(values, pa.binary()).slice(first)
    assert digest_texts(array).tolist() == [list(digest(value or b"")) for value in values[first:]]


@given(st.binary(min_size=1, max_size=64), st.data())
@examples(200)
def test_texts_that_differ_have_different_digests(value: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(value) - 1))
    other = bytes([*value[:at], value[at] ^ data.draw(st.integers(1, 255)), *value[at + 1 :]])
    variants = pa.array([value, other, value + b"\0", value[:-1]], pa.binary())
    digests = digest_texts(variants)
    for column in range(2):
        assert len(set(digests[:, column].tolist())) == 4


def test_digests_stay_what_they_are() -> None:
    """Machines that compare with each other, and later versions, must agree."""
    assert digest_texts(pa.array(["", "penstock"])).tolist() == [
        [-192675112908096844, 856555277656714306],
        list(digest(b"penstock")),
    ]
