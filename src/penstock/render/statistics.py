"""Statistics of a log as text for a terminal, or as one JSON object."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.binlog.rows.table_changes import RowChangeKind
from penstock.inspect.statistics import LogStatistics
from penstock.render.bars import draw_bar, format_duration, format_size, format_table

_BARS = 24
_BAR_WIDTH = 40
_SHARE_WIDTH = 10


def format_statistics(statistics: LogStatistics) -> str:
    """Format the statistics of a log as text for a terminal."""
    parts = [_format_summary(statistics)]
    if statistics.tables:
        parts.append(_format_tables(statistics))
    if statistics.largest:
        parts.append(_format_largest(statistics))
    if statistics.timeline.counts:
        parts.append(_format_rate(statistics))
    return "\n".join(parts)


def statistics_to_json(statistics: LogStatistics) -> str:
    """Return the statistics of a log as one JSON object."""
    width, bars = statistics.timeline.bars(_BARS)
    members: dict[str, Any] = {
        "start": str(statistics.start) if statistics.start else None,
        "end": str(statistics.end) if statistics.end else None,
        "first": _to_iso(statistics.first_us),
        "last": _to_iso(statistics.last_us),
        "bytes": statistics.bytes,
        "events": statistics.events,
        "statements": statistics.statements,
        "load_data_statements": statistics.load_data_statements,
        "incidents": statistics.incidents,
        "transactions": statistics.transactions,
        "rows": statistics.rows,
        "tables": [
            {
                "table": str(name),
                "transactions": count.all_transactions,
                "transactions_with": {kind.value: count.transactions[kind] for kind in RowChangeKind},
                "rows": {kind.value: count.rows[kind] for kind in RowChangeKind},
                "bytes": {kind.value: count.bytes[kind] for kind in RowChangeKind},
            }
            for name, count in sorted(statistics.tables.items())
        ],
        "largest_transactions": [
            {
                "position": str(transaction.position),
                "gtid": transaction.gtid,
                "ts": _to_iso(transaction.commit_us),
                "rows": transaction.rows,
                "bytes": transaction.bytes,
            }
            for transaction in statistics.largest
        ],
        "rate": {
            "seconds": width,
            "bars": [
                {"ts": _to_iso(start * 1_000_000), "rows": rows, "transactions": transactions, "bytes": size}
                for start, (rows, transactions, size) in bars.items()
            ],
        },
    }
    return json.dumps(members, ensure_ascii=False) + "\n"


def _format_summary(statistics: LogStatistics) -> str:
    """Format the range of the log, its time, and its totals."""
    if statistics.start is None:
        return "nothing in this part of the log\n"
    pace, span = "", "time unknown"
    if statistics.first_us is not None and statistics.last_us is not None:
        seconds = (statistics.last_us - statistics.first_us) / 1e6
        pace = f", {statistics.rows / seconds:,.0f} rows/s" if seconds >= 1 else ""
        span = (
            f"{_format_time(statistics.first_us)} … {_format_time(statistics.last_us)} UTC ({format_duration(seconds)})"
        )
    incidents = f"INCIDENTS: {statistics.incidents:,}, where events may be lost\n" if statistics.incidents else ""
    loads = statistics.load_data_statements
    loaded = f"LOAD DATA in statement format: {loads:,}, whose rows are not counted\n" if loads else ""
    return (
        f"{statistics.start} … {statistics.end}\n"
        f"{span}\n"
        f"{statistics.rows:,} rows in {statistics.transactions:,} transactions{pace};"
        f" statements: {statistics.statements:,};"
        f" {statistics.events:,} events, {format_size(statistics.bytes)}\n"
        f"{loaded}{incidents}"
    )


def _format_tables(statistics: LogStatistics) -> str:
    """Format a line per table, and below it one per kind of change."""
    most = max(count.all_bytes for count in statistics.tables.values())
    rows: list[list[str]] = []
    for name, count in sorted(statistics.tables.items(), key=lambda item: (-item[1].all_bytes, item[0])):
        rows.append(_count_cells(str(name), most, count.all_bytes, count.all_rows, count.all_transactions))
        rows += [
            _count_cells(f"  {kind.value}", most, count.bytes[kind], count.rows[kind], count.transactions[kind])
            for kind in RowChangeKind
            if count.rows[kind]
        ]
    return format_table(["table", "", "bytes", "rows", "transactions"], rows, left=2)


def _count_cells(name: str, most: int, size: int, rows: int, transactions: int) -> list[str]:
    """Return the cells of one line: name, bar, bytes, rows and transactions."""
    return [name, draw_bar(size, most, _SHARE_WIDTH), format_size(size), f"{rows:,}", f"{transactions:,}"]


def _format_largest(statistics: LogStatistics) -> str:
    """Format the largest transactions."""
    rows = [
        [
            str(transaction.position),
            _format_time(transaction.commit_us) if transaction.commit_us is not None else "unknown",
            transaction.gtid or "",
            f"{transaction.rows:,}",
            format_size(transaction.bytes),
        ]
        for transaction in statistics.largest
    ]
    return format_table(["largest transactions", "time", "gtid", "rows", "bytes"], rows, left=3)


def _format_rate(statistics: LogStatistics) -> str:
    """Format the rows per unit of time as bars."""
    width, bars = statistics.timeline.bars(_BARS)
    most = max(rows for rows, _, _ in bars.values())
    lines = [f"rows per {format_duration(width)}\n"]
    for start, (rows, _, _) in bars.items():
        drawn = draw_bar(rows, most, _BAR_WIDTH)
        lines.append(f"{_format_time(start * 1_000_000)}  {drawn}{' ' if drawn else ''}{rows:,}\n")
    return "".join(lines)


def _format_time(us: int) -> str:
    """Format microseconds since 1970 as date and time in UTC."""
    return f"{_to_datetime(us):%Y-%m-%d %H:%M:%S}"


def _to_iso(us: int | None) -> str | None:
    """Return microseconds since 1970 in ISO 8601; None stays None."""
    return None if us is None else _to_datetime(us).isoformat().replace("+00:00", "Z")


def _to_datetime(us: int) -> datetime:
    """Return microseconds since 1970 as a datetime in UTC."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)
