"""Numbers for people: grouped digits, sizes, durations, and bars of block characters."""

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_UNITS = ("B", "KB", "MB", "GB", "TB")


def draw_bar(value: float, maximum: float, width: int) -> str:
    """Draw `value` as a bar of block characters, so that `maximum` fills `width` characters; a value above 0 shows at
    least a sliver.
    """
    if maximum <= 0 or value <= 0:
        return ""
    eighths = max(1, round(8 * width * value / maximum))
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def format_size(size: float) -> str:
    """Format a number of bytes with a decimal unit, such as `1.5 MB`."""
    unit = 0
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size /= 1000
        unit += 1
    return f"{size:.0f} {_UNITS[unit]}" if unit == 0 or size >= 100 else f"{size:.1f} {_UNITS[unit]}"


def format_duration(seconds: float) -> str:
    """Format seconds with the two largest units that are not zero, such as `2 h 5 min`."""
    left = round(seconds)
    parts: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "less than a second"


def format_table(head: list[str], rows: list[list[str]], left: int = 1) -> str:
    """Format a heading and rows as aligned columns; the first `left` columns hold text, the others numbers."""
    widths = [max(len(line[i]) for line in [head, *rows]) for i in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in [head, *rows]
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)
