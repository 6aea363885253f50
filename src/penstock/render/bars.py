"""Numbers for people: grouped digits, sizes, durations, and bars of block characters."""

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_UNITS = ("B", "KB", "MB", "GB", "TB")


def bar(value: float, most: float, width: int) -> str:
    """`most` fills the width; a value above 0 shows at least a sliver."""
    if most <= 0 or value <= 0:
        return ""
    eighths = max(1, round(8 * width * value / most))
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def size_text(size: float) -> str:
    unit = 0
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size /= 1000
        unit += 1
    return f"{size:.0f} {_UNITS[unit]}" if unit == 0 or size >= 100 else f"{size:.1f} {_UNITS[unit]}"


def duration_text(seconds: float) -> str:
    """The two largest units that are not 0."""
    left = round(seconds)
    parts: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "less than a second"


def table_text(head: list[str], rows: list[list[str]], left: int = 1) -> str:
    """Columns side by side; the first `left` ones are texts, the others numbers."""
    widths = [max(len(line[i]) for line in [head, *rows]) for i in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in [head, *rows]
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)
