"""`_seq`: packing keeps order and comes back; what does not fit is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model import Position, Sequence
from penstock.model.sequence import MAX_EPOCH, MAX_FILE, MAX_OFFSET
from tests.twins.strategy import examples


def _up_to(most: int) -> st.SearchStrategy[int]:
    return st.one_of(st.sampled_from((0, 1, most - 1, most)), st.integers(0, most))


SEQUENCES = st.builds(Sequence, _up_to(MAX_EPOCH), _up_to(MAX_FILE), _up_to(MAX_OFFSET))


@examples(200)
@given(SEQUENCES)
def test_packs_into_63_bits_and_comes_back(sequence: Sequence) -> None:
    assert 0 <= int(sequence) < 1 << 63
    assert Sequence.from_int(int(sequence)) == sequence


@examples(200)
@given(st.integers(0, (1 << 63) - 1))
def test_every_63_bit_number_is_a_sequence(number: int) -> None:
    assert int(Sequence.from_int(number)) == number


@examples(200)
@given(SEQUENCES, SEQUENCES)
def test_order_is_epoch_then_file_then_offset(a: Sequence, b: Sequence) -> None:
    assert (int(a) < int(b)) == ((a.epoch, a.file_number, a.offset) < (b.epoch, b.file_number, b.offset))


@pytest.mark.parametrize(
    "parts",
    [(MAX_EPOCH + 1, 0, 0), (0, MAX_FILE + 1, 0), (0, 0, MAX_OFFSET + 1), (-1, 0, 0), (0, -1, 0), (0, 0, -1)],
)
def test_what_does_not_fit_is_refused(parts: tuple[int, int, int]) -> None:
    with pytest.raises(OverflowError, match="63 bits"):
        Sequence(*parts)


@pytest.mark.parametrize("number", [-1, 1 << 63])
def test_other_numbers_are_no_sequence(number: int) -> None:
    with pytest.raises(OverflowError):
        Sequence.from_int(number)


def test_at_a_position() -> None:
    assert Sequence.from_position(Position("binlog.000009", 77, epoch=2)) == Sequence(2, 9, 77)
