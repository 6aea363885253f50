"""Equal values have equal digests whichever type a mirror has for them, and others have others."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import SchemaError
from penstock.mirror.mirror_column import MirrorColumn, digest_values, show_values
from penstock.model import Column, WireType

W = WireType
INTEGER, BIG = Column("c", W.LONG), Column("c", W.LONGLONG, unsigned=True)
DECIMAL = Column("c", W.NEWDECIMAL, precision=10, scale=2)
LONG_DECIMAL = Column("c", W.NEWDECIMAL, precision=50, scale=2)
TEXT, RAW = Column("c", W.VARCHAR, size=40, charset="utf8mb4"), Column("c", W.VARCHAR, size=40, charset="binary")
MOMENT = datetime(2024, 2, 29, 12, 0, 0, 125000)  # noqa: DTZ001 - a DATETIME has no zone
SAME: list[tuple[Column, pa.Array, pa.Array]] = [
    (INTEGER, pa.array([1, None, -7], pa.int32()), pa.array([1, None, -7], pa.int64())),
    (INTEGER, pa.array([1, None, 0], pa.int8()), pa.array([True, None, False])),
    (BIG, pa.array([2**64 - 1, None], pa.uint64()), pa.array([Decimal(2**64 - 1), None], pa.decimal128(20, 0))),
    (INTEGER, pa.array([5, 5], pa.int32()), pa.array([5, 5], pa.int32()).dictionary_encode()),
    (Column("c", W.FLOAT), pa.array([1.5, None, -0.0], pa.float32()), pa.array([1.5, None, 0.0], pa.float64())),
    (
        DECIMAL,
        pa.array([Decimal("1.5"), None], pa.decimal128(10, 2)),
        pa.array([Decimal("1.5"), None], pa.decimal256(60, 9)),
    ),
    (DECIMAL, pa.array([Decimal(7)], pa.decimal128(10, 2)), pa.array([7], pa.int64())),
    (LONG_DECIMAL, pa.array([Decimal("0.01")], pa.decimal256(50, 2)), pa.array(["0.01"])),
    (Column("c", W.DATE), pa.array([date(2024, 2, 29), None]), pa.array([date(2024, 2, 29), None], pa.date64())),
    (Column("c", W.DATETIME2, size=3), pa.array([MOMENT], pa.timestamp("us")), pa.array([MOMENT], pa.timestamp("ns"))),
    (
        Column("c", W.TIMESTAMP2, size=3),
        pa.array([MOMENT.replace(tzinfo=UTC)], pa.timestamp("us", "UTC")),
        pa.array([MOMENT], pa.timestamp("us")),
    ),
    (
        Column("c", W.TIMESTAMP2, size=3),
        pa.array([MOMENT.replace(tzinfo=UTC)], pa.timestamp("us", "UTC")),
        pa.array([MOMENT.replace(tzinfo=UTC)], pa.timestamp("ms", "Asia/Tokyo")),
    ),
    (Column("c", W.TIME2), pa.array([timedelta(hours=-30)], pa.duration("us")), pa.array([-30 * 3600 * 10**6])),
    (Column("c", W.TIME2), pa.array(["-30:00:00"]), pa.array(["-30:00:00"])),
    (TEXT, pa.array(["", None, "ä"]), pa.array(["", None, "ä"], pa.large_string())),
    (TEXT, pa.array(["a", "b", "a"]), pa.array(["a", "b", "a"]).dictionary_encode()),
    (RAW, pa.array([b"\0", None, b""]), pa.array([b"\0", None, b""], pa.large_binary())),
    (RAW, pa.array([b"ab", b"cd"]), pa.array([b"ab", b"cd"], pa.binary(2))),
    (
        Column("c", W.VECTOR, size=4, dimension=2),
        pa.array([[1.0, 2.5], None], pa.list_(pa.float32())),
        pa.array([[1.0, 2.5], None], pa.list_(pa.field("element", pa.float64()))),
    ),
]


def digests(pair: MirrorColumn, array: pa.Array) -> list[list[int]]:
    return digest_values(pair.convert(array)).tolist()


@pytest.mark.parametrize(("column", "source", "mirror"), SAME, ids=lambda value: str(getattr(value, "type", "")))
def test_equal_values_of_both_types_have_equal_digests(column: Column, source: pa.Array, mirror: pa.Array) -> None:
    pair = MirrorColumn.of(column, source.type, mirror.type)
    assert digests(pair, source) == digests(pair, mirror)
    assert show_values(pair.convert(source)) == show_values(pair.convert(mirror))
    assert digests(pair, source.slice(len(source) - 1)) == digests(pair, source)[-1:]


VALUES: dict[str, tuple[Column, pa.DataType, st.SearchStrategy[Any]]] = {
    "integer": (INTEGER, pa.int32(), st.integers(-3, 3)),
    "float": (Column("c", W.DOUBLE), pa.float64(), st.sampled_from([0.0, 1.5, -1.5, 1e300])),
    "decimal": (DECIMAL, pa.decimal128(10, 2), st.sampled_from([Decimal("0.00"), Decimal("0.01"), Decimal("-1.00")])),
    "text": (TEXT, pa.string(), st.sampled_from(["", "a", "b", "a\0", "n" * 8, "n" * 16])),
    "bytes": (RAW, pa.binary(), st.sampled_from([b"", b"\0", b"\0\0", b"a"])),
    "date": (Column("c", W.DATE), pa.date32(), st.sampled_from([date(2024, 1, 1), date(1970, 1, 1)])),
}


@pytest.mark.parametrize("name", VALUES)
@given(data=st.data())
def test_values_have_equal_digests_if_and_only_if_they_are_equal(name: str, data: st.DataObject) -> None:
    column, kind, values = VALUES[name]
    pair = MirrorColumn.of(column, kind, kind)
    left: Sequence[Any] = data.draw(st.lists(st.one_of(st.none(), values), min_size=1, max_size=5))
    right = [data.draw(st.one_of(st.none(), values)) for _ in left]
    first, second = (np.array(digests(pair, pa.array(side, kind))) for side in (left, right))
    is_same = (first == second).all(axis=1).tolist()
    assert is_same == [one_value == other for one_value, other in zip(left, right, strict=True)]


@pytest.mark.parametrize(
    ("column", "source", "mirror"),
    [
        (INTEGER, pa.int32(), pa.string()),
        (INTEGER, pa.int32(), pa.decimal128(10, 2)),
        (DECIMAL, pa.decimal128(10, 2), pa.float64()),
        (TEXT, pa.string(), pa.binary()),
        (RAW, pa.binary(), pa.string()),
        (Column("c", W.DATE), pa.date32(), pa.timestamp("us")),
        (LONG_DECIMAL, pa.decimal256(65, 0), pa.decimal256(60, 30)),
    ],
    ids=str,
)
def test_types_that_cannot_be_compared_are_refused(column: Column, source: pa.DataType, mirror: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="compared"):
        MirrorColumn.of(column, source, mirror)


def test_times_as_texts_are_compared_without_zeros_at_their_ends() -> None:
    column = Column("at", WireType.DATETIME2, size=6)
    pair = MirrorColumn.of(column, pa.string(), pa.string())
    texts = pa.array(["2026-01-02 10:00:00.000000", "2026-01-02 10:00:00.120000", "2026-01-02 10:00:00", None])
    assert pair.convert(texts).to_pylist() == [
        "2026-01-02 10:00:00",
        "2026-01-02 10:00:00.12",
        "2026-01-02 10:00:00",
        None,
    ]
    plain = MirrorColumn.of(Column("name", WireType.VARCHAR, charset="utf8mb4"), pa.string(), pa.string())
    assert plain.convert(pa.array(["1.00"])).to_pylist() == ["1.00"], "only times"
