"""canal's passwords: whoever knows one is let in, and nobody else, whatever is sent as a token."""

import hashlib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.canal import scramble

SEEDS = st.binary(min_size=scramble.SEED_BYTES, max_size=scramble.SEED_BYTES)
PASSWORDS = st.text(min_size=1, max_size=20)


@given(PASSWORDS, SEEDS)
def test_a_token_proves_its_password(password: str, seed: bytes) -> None:
    assert scramble.is_valid_token(
        scramble.scramble_password(password, seed), seed, scramble.hash_for_storage(password)
    )


@given(PASSWORDS, PASSWORDS, SEEDS, SEEDS)
def test_another_password_or_another_seed_proves_nothing(
    password: str, other: str, seed: bytes, other_seed: bytes
) -> None:
    assume(password != other)
    assume(seed != other_seed)
    stored = scramble.hash_for_storage(password)
    assert not scramble.is_valid_token(scramble.scramble_password(other, seed), seed, stored)
    assert not scramble.is_valid_token(scramble.scramble_password(password, other_seed), seed, stored)


@pytest.mark.parametrize("token", [b"", b"zz", b"\xff", b"ab", b"00" * 20, b"00" * 21])
def test_a_token_that_is_none_is_refused(token: bytes) -> None:
    assert not scramble.is_valid_token(token, b"12345678", scramble.hash_for_storage("secret"))


def test_without_a_password_anybody_may_and_nothing_is_sent() -> None:
    assert scramble.scramble_password("", b"12345678") == b""
    assert scramble.is_valid_token(b"", b"12345678", "")
    assert scramble.is_valid_token(b"anything", b"12345678", "")


def test_what_is_stored_is_what_mysql_stores() -> None:
    """PASSWORD('canal') of MySQL 5.7, without its star: canal's files have it in this form."""
    expected = hashlib.sha1(hashlib.sha1(b"canal").digest()).hexdigest()  # noqa: S324 - canal's own choice
    assert scramble.hash_for_storage("canal") == expected == "e3619321c1a937c46a0d8bd1dac39f93b27d4458"
