"""Statistics of a log as text for a terminal, or as one JSON object."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.binlog.rows.table_changes import RowChangeKind
from penstock.inspect.statistics import Statistics
from penstock.render.bars import bar, duration_text, size_text, table_text

_BARS = 24
_BAR_WIDTH = 40
_SHARE_WIDTH = 10


def statistics_text(found: Statistics) -> str:
    parts = [_summary(found)]
    if found.tables:
        parts.append(_tables(found))
    if found.largest:
        parts.append(_largest(found))
    if found.timeline.counts:
        parts.append(_rate(found))
    return "\n".join(parts)


def statistics_json(found: Statistics) -> str:
    width, bars = found.timeline.bars(_BARS)
    about: dict[str, Any] = {
        "start": str(found.start) if found.start else None,
        "end": str(found.end) if found.end else None,
        "first": _iso(found.first_us),
        "last": _iso(found.last_us),
        "bytes": found.bytes,
        "events": found.events,
        "statements": found.statements,
        "incidents": found.incidents,
        "transactions": found.transactions,
        "rows": found.rows,
        "tables": [
            {
                "table": str(name),
                "transactions": count.all_transactions,
                "transactions_with": {kind.value: count.transactions[kind] for kind in RowChangeKind},
                "rows": {kind.value: count.rows[kind] for kind in RowChangeKind},
                "bytes": {kind.value: count.bytes[kind] for kind in RowChangeKind},
            }
            for name, count in sorted(found.tables.items())
        ],
        "largest_transactions": [
            {
                "position": str(one.position),
                "gtid": one.gtid,
                "ts": _iso(one.commit_us),
                "rows": one.rows,
                "bytes": one.bytes,
            }
            for one in found.largest
        ],
        "rate": {
            "seconds": width,
            "bars": [
                {"ts": _iso(start * 1_000_000), "rows": rows, "transactions": transactions, "bytes": size}
                for start, (rows, transactions, size) in bars.items()
            ],
        },
    }
    return json.dumps(about, ensure_ascii=False) + "\n"


def _summary(found: Statistics) -> str:
    if found.start is None:
        return "nothing in this part of the log\n"
    pace, span = "", "time unknown"
    if found.first_us is not None and found.last_us is not None:
        seconds = (found.last_us - found.first_us) / 1e6
        pace = f", {found.rows / seconds:,.0f} rows/s" if seconds >= 1 else ""
        span = f"{_moment(found.first_us)} … {_moment(found.last_us)} UTC ({duration_text(seconds)})"
    incidents = f"INCIDENTS: {found.incidents:,}, where events may be lost\n" if found.incidents else ""
    return (
        f"{found.start} … {found.end}\n"
        f"{span}\n"
        f"{found.rows:,} rows in {found.transactions:,} transactions{pace}; statements: {found.statements:,};"
        f" {found.events:,} events, {size_text(found.bytes)}\n"
        f"{incidents}"
    )


def _tables(found: Statistics) -> str:
    """A line per table, and below it one per kind of change."""
    most = max(count.all_bytes for count in found.tables.values())
    rows: list[list[str]] = []
    for name, count in sorted(found.tables.items(), key=lambda item: (-item[1].all_bytes, item[0])):
        rows.append(_counts(str(name), most, count.all_bytes, count.all_rows, count.all_transactions))
        rows += [
            _counts(f"  {kind.value}", most, count.bytes[kind], count.rows[kind], count.transactions[kind])
            for kind in RowChangeKind
            if count.rows[kind]
        ]
    return table_text(["table", "", "bytes", "rows", "transactions"], rows, left=2)


def _counts(name: str, most: int, size: int, rows: int, transactions: int) -> list[str]:
    return [name, bar(size, most, _SHARE_WIDTH), size_text(size), f"{rows:,}", f"{transactions:,}"]


def _largest(found: Statistics) -> str:
    rows = [
        [
            str(one.position),
            _moment(one.commit_us) if one.commit_us is not None else "unknown",
            one.gtid or "",
            f"{one.rows:,}",
            size_text(one.bytes),
        ]
        for one in found.largest
    ]
    return table_text(["largest transactions", "time", "gtid", "rows", "bytes"], rows, left=3)


def _rate(found: Statistics) -> str:
    width, bars = found.timeline.bars(_BARS)
    most = max(rows for rows, _, _ in bars.values())
    lines = [f"rows per {duration_text(width)}\n"]
    for start, (rows, _, _) in bars.items():
        drawn = bar(rows, most, _BAR_WIDTH)
        lines.append(f"{_moment(start * 1_000_000)}  {drawn}{' ' if drawn else ''}{rows:,}\n")
    return "".join(lines)


def _moment(us: int) -> str:
    return f"{_datetime(us):%Y-%m-%d %H:%M:%S}"


def _iso(us: int | None) -> str | None:
    return None if us is None else _datetime(us).isoformat().replace("+00:00", "Z")


def _datetime(us: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)
