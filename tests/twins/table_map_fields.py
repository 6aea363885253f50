"""Taking optional fields out of a TABLE_MAP body."""

from collections.abc import Set as AbstractSet


def _packed(body: bytes, at: int) -> tuple[int, int]:
    """The number, and where it ends."""
    first = body[at]
    size = {252: 2, 253: 3, 254: 8}.get(first, 0)
    return (int.from_bytes(body[at + 1 : at + 1 + size], "little"), at + 1 + size) if size else (first, at + 1)


def without_fields(body: bytes, fields: AbstractSet[int]) -> bytes:
    at = 8
    for _ in range(2):
        at += body[at] + 2
    count, at = _packed(body, at)
    size, at = _packed(body, at + count)
    at += size + (count + 7) // 8
    kept = body[:at]
    while at < len(body):
        length, start = _packed(body, at + 1)
        if body[at] not in fields:
            kept += body[at : start + length]
        at = start + length
    return kept
