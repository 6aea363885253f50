"""Types for columns that were altered: every value stays what it is."""

import decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.rows.widening import common_type, widen
from tests.twins.strategy import examples

_INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
_OTHERS = [pa.float32(), pa.float64(), pa.decimal128(5, 2), pa.decimal128(30, 10), pa.decimal256(65, 30)]
_TYPES = st.sampled_from([*_INTEGERS, *_OTHERS])


def values(kind: pa.DataType) -> st.SearchStrategy[object]:
    if pa.types.is_integer(kind):
        signed = pa.types.is_signed_integer(kind)
        return st.integers(-(1 << kind.bit_width - 1) if signed else 0, (1 << kind.bit_width - signed) - 1)
    if pa.types.is_floating(kind):
        return st.floats(allow_nan=False, width=kind.bit_width)
    most = 10**kind.precision - 1
    with decimal.localcontext(prec=100):
        return st.integers(-most, most).map(lambda whole: decimal.Decimal(whole).scaleb(-kind.scale))


@examples(300)
@given(_TYPES, _TYPES, st.data())
def test_every_value_stays_what_it_is(first: pa.DataType, other: pa.DataType, data: st.DataObject) -> None:
    kind = common_type(first, other)
    assert kind == common_type(other, first)
    if kind is None:
        assert pa.types.is_floating(first) or pa.types.is_floating(other) or pa.types.is_decimal256(other)
        return
    with decimal.localcontext(prec=100):
        value = data.draw(values(first))
        wide = widen(pa.array([value, None], first), kind)
        assert wide is not None
        assert wide.to_pylist() == [value, None]


@pytest.mark.parametrize(
    ("first", "other", "expected"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.uint32(), pa.int32(), pa.int64()),
        (pa.uint64(), pa.int64(), pa.decimal128(20, 0)),
        (pa.int32(), pa.float64(), pa.float64()),
        (pa.int64(), pa.float64(), None),
        (pa.decimal128(30, 10), pa.float64(), None),
        (pa.decimal128(5, 2), pa.decimal128(6, 4), pa.decimal128(7, 4)),
        (pa.int32(), pa.decimal128(5, 2), pa.decimal128(12, 2)),
        (pa.string(), pa.int32(), None),
        (pa.timestamp("us"), pa.date32(), None),
    ],
)
def test_types(first: pa.DataType, other: pa.DataType, expected: pa.DataType | None) -> None:
    assert common_type(first, other) == expected


def test_a_narrower_type_is_none_to_widen_to() -> None:
    assert widen(pa.array([1], pa.int64()), pa.int32()) is None
