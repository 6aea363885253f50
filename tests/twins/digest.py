"""The digest of a text in plain Python."""

_MASK = (1 << 64) - 1
_MIX, _LAST_MIX = 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53


def digest(value: bytes) -> tuple[int, int]:
    """Return both numbers of the digest of a text."""
    first, second = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
    for at in range(0, len(value), 8):
        word = int.from_bytes(value[at : at + 8], "little")
        first = (first ^ word) * _MIX & _MASK
        first ^= first >> 32
        second = (second + word) * _LAST_MIX & _MASK
        second ^= second >> 29
    first = (first ^ len(value)) * _LAST_MIX & _MASK
    first = (first ^ first >> 33) * _MIX & _MASK
    second = (second + len(value)) * _MIX & _MASK
    second = (second ^ second >> 31) * _LAST_MIX & _MASK
    return _signed(first ^ first >> 29), _signed(second ^ second >> 32)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
