"""Dates and times: every count of fraction digits at its borders, and dates that no calendar has."""

from collections.abc import Iterable

from tests.integration.types.column import Column, Kind, Table

_FRACTIONS = (".000000", ".100000", ".900000", ".010000", ".990000", ".000001", ".000010", ".999999", ".123456")
_DAYS = ("1000-01-01", "9999-12-31", "1970-01-01", "1969-12-31", "2024-02-29", "2000-02-29", "1900-02-28", "0001-01-01")
_TIMES = ("00:00:00", "12:34:56", "838:59:59", "838:59:58")
_ODD_DAYS = (
    "0000-00-00", "2024-00-10", "2024-10-00", "2024-00-00", "0000-01-01", "0000-00-01", "0000-02-29", "2023-02-31",
    "2023-04-31", "2023-02-29", "2000-02-30", "9999-00-00",
)  # fmt: skip


def moments() -> Table:
    columns = [Column("date", Kind.DATE, "DATE", _quoted(_DAYS))]
    for digits in range(7):
        parts = tuple(dict.fromkeys(part[: digits + 1].rstrip(".") for part in _FRACTIONS))
        times = [f"{sign}{time}{part}" for time in _TIMES for part in parts for sign in ("", "-")]
        ends = ("00:00:00", "23:59:59") * len(_DAYS)
        days = [f"{day} {time}{part}" for part in parts for day, time in zip(_DAYS, ends, strict=False)]
        stamps = [
            f"{second}{part}"
            for second in ("1970-01-01 00:00:01", "2038-01-19 03:14:07", "2024-02-29 12:34:56", "2001-09-09 01:46:40")
            for part in parts
        ]
        columns += [
            Column(f"time{digits}", Kind.TIME, f"TIME({digits})", _quoted(times), digits),
            Column(f"datetime{digits}", Kind.DATETIME, f"DATETIME({digits})", _quoted(days), digits),
            Column(f"timestamp{digits}", Kind.TIMESTAMP, f"TIMESTAMP({digits}) NULL", _quoted(stamps), digits),
        ]
    required = "TIMESTAMP(2) NOT NULL DEFAULT '2020-01-01 00:00:00'"
    columns.append(Column("required", Kind.TIMESTAMP, required, ("'2020-02-02 02:02:02.22'",), 2))
    return Table("moments", columns)


def odd_dates() -> Table:
    """Zero dates, dates with a zero in them, and days that their month does not have."""
    columns = [Column("date", Kind.DATE, "DATE", _quoted(_ODD_DAYS))]
    for digits in (0, 1, 2, 3, 6):
        part = ".123456"[: digits + 1].rstrip(".")
        days = [f"{day} {time}" for day in _ODD_DAYS for time in ("00:00:00", f"12:34:56{part}")]
        stamps = ("0000-00-00 00:00:00", "1970-01-01 00:00:01")
        columns += [
            Column(f"datetime{digits}", Kind.DATETIME, f"DATETIME({digits})", _quoted(days), digits),
            Column(f"timestamp{digits}", Kind.TIMESTAMP, f"TIMESTAMP({digits}) NULL", _quoted(stamps), digits),
        ]
    return Table("odd_dates", columns, sql_mode="ALLOW_INVALID_DATES")


def old_moments() -> Table:
    """For a server that is told to make columns of the types of before 5.6, which had no fractions."""
    times = [f"{sign}{time}" for time in _TIMES for sign in ("", "-")]
    days = [f"{day} 23:59:59" for day in (*_DAYS, *_ODD_DAYS)]
    stamps = ("0000-00-00 00:00:00", "1970-01-01 00:00:01", "2038-01-19 03:14:07", "2024-02-29 12:34:56")
    columns = [
        Column("time", Kind.TIME, "TIME", _quoted(times)),
        Column("datetime", Kind.DATETIME, "DATETIME", _quoted(days)),
        Column("timestamp", Kind.TIMESTAMP, "TIMESTAMP NULL", _quoted(stamps)),
        Column("date", Kind.DATE, "DATE", _quoted((*_DAYS, *_ODD_DAYS))),
    ]
    return Table("old_moments", columns, sql_mode="ALLOW_INVALID_DATES")


def old_moments_with_fractions() -> list[Table]:
    days, times = ("2024-01-02 03:04:05.123456", "1999-12-31 23:59:59.999999"), ("-13:14:15.123456", "01:02:03.987654")
    return [
        Table(
            f"{kind.name.lower()}{digits}", [Column("a", kind, f"{kind.name}({digits}) NULL", _quoted(values), digits)]
        )
        for kind, values in ((Kind.DATETIME, days), (Kind.TIMESTAMP, days), (Kind.TIME, times))
        for digits in range(1, 7)
    ]


def _quoted(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"'{text}'" for text in texts)
