"""Numbers: every width with and without a sign, every BIT, decimals of every precision, floats at their limits."""

from collections.abc import Iterator

from tests.integration.types.column import Column, Kind, Table

_INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32, "BIGINT": 64}
_FLOATS = (
    "0", "-0e0", "1", "-1", "0.1", "-3.4028234e38", "3.4028234e38", "1.17549435e-38", "1e-40", "16777217", "1.5e10",
    "3.14159274", "-123456.789", "1e-7", "9999999",
)  # fmt: skip
_DOUBLES = (
    "0", "-0e0", "1", "-1", "0.1", "1.7976931348623157e308", "-1.7976931348623157e308", "2.2250738585072014e-308",
    "2.5e-310", "9007199254740993", "3.141592653589793", "1e15", "1e16", "-1e-7", "123456789.12345679", "1e300",
)  # fmt: skip


def integers() -> Table:
    return Table("integers", list(_integer_columns()))


def bits() -> Table:
    columns = [
        Column(
            f"bit{size}",
            Kind.BIT,
            f"BIT({size})",
            ("0", "1", str((1 << size) - 1), str(1 << (size - 1)), str(0xA5A5A5A5A5A5A5A5 & (1 << size) - 1)),
            size=size,
        )
        for size in range(1, 65)
    ]
    required = Column("bit_required", Kind.BIT, "BIT(7) NOT NULL", ("0", "127"), size=7)
    years = ("0", "1901", "1970", "2069", "2155", "'0000'")
    return Table("bits", [*columns, required, Column("year", Kind.YEAR, "YEAR", years)])


def decimals(largest_scale: int) -> Table:
    """More than 250 columns, so that their count takes more than a byte in the log."""
    shapes = {(p, s) for p in range(1, 66) for s in (0, p // 4, p // 3, p // 2, p) if s <= largest_scale}
    shapes |= {(65, scale) for scale in range(largest_scale + 1)}
    columns = [
        Column(
            f"d{precision}_{scale}",
            Kind.DECIMAL,
            f"DECIMAL({precision},{scale})",
            tuple(_decimal_values(precision, scale)),
            size=precision,
            scale=scale,
        )
        for precision, scale in sorted(shapes)
    ]
    unsigned = Column("plus", Kind.DECIMAL, "DECIMAL(20,6) UNSIGNED", ("0", "99999999999999.999999"), 20, 6, True)
    filled = Column("filled", Kind.DECIMAL, "DECIMAL(12,3) ZEROFILL", ("0", "7.5", "999999999.999"), 12, 3, True)
    return Table("decimals", [*columns, unsigned, filled])


def reals() -> Table:
    return Table(
        "reals",
        [
            Column("f", Kind.FLOAT, "FLOAT", _FLOATS),
            Column("f_required", Kind.FLOAT, "FLOAT NOT NULL", _FLOATS),
            Column("f_plus", Kind.FLOAT, "FLOAT UNSIGNED", tuple(v for v in _FLOATS if "-" not in v[0]), unsigned=True),
            Column("f7_3", Kind.FLOAT, "FLOAT(7,3)", ("0", "1.2345", "-9999.999", "9999.999")),
            Column("f24", Kind.FLOAT, "FLOAT(24)", _FLOATS),
            Column("f25", Kind.DOUBLE, "FLOAT(25)", _DOUBLES),
            Column("d", Kind.DOUBLE, "DOUBLE", _DOUBLES),
            Column("d_required", Kind.DOUBLE, "DOUBLE NOT NULL", _DOUBLES),
            Column("d_plus", Kind.DOUBLE, "DOUBLE UNSIGNED", ("0", "0.1", "1e308"), unsigned=True),
            Column("d20_10", Kind.DOUBLE, "DOUBLE(20,10)", ("0", "1.23456789012345", "-999999999.9999999999")),
            Column("r", Kind.DOUBLE, "REAL", _DOUBLES),
        ],
    )


def _integer_columns() -> Iterator[Column]:
    for name, size in _INTEGERS.items():
        half, top = 1 << (size - 1), (1 << size) - 1
        signed = (str(-half), str(half - 1), "0", "1", "-1", str(-(half >> 1) - 3))
        plus = ("0", str(top), str(half), str(half - 1), "1", str(0x123456789ABCDEF0 & top))
        low = name.lower()
        yield Column(low, Kind.INTEGER, name, signed, size)
        yield Column(f"{low}_required", Kind.INTEGER, f"{name} NOT NULL", signed, size)
        yield Column(f"{low}_plus", Kind.INTEGER, f"{name} UNSIGNED", plus, size, unsigned=True)
        yield Column(f"{low}_filled", Kind.INTEGER, f"{name}(20) ZEROFILL", plus, size, unsigned=True)
        # Between them something without a sign bit in the log.
        yield Column(f"{low}_text", Kind.TEXT, "VARCHAR(5)", ("'x'",), charset="utf8mb4")
    yield Column("flag", Kind.INTEGER, "BOOL", ("TRUE", "FALSE"), 8)


def _decimal_values(precision: int, scale: int) -> Iterator[str]:
    """Zero, the limits, the smallest steps, digits that all differ, and groups of zeros between digits."""
    digits = "1234567890" * 7
    for text in ("9" * precision, digits[:precision], "1" + "0" * (precision - 1), "0" * (precision - 1) + "1"):
        number = f"{text[: precision - scale] or '0'}.{text[precision - scale :]}".rstrip(".")
        yield number
        yield f"-{number}"
    yield "0"
