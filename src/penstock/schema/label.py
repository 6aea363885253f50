"""Labels of ENUM and SET between text and the bytes that a server keeps.

A server stores a label in the charset of its column. What that charset does not have is a question mark. CONVERT TO
CHARACTER SET keeps the bytes (seen in MySQL 5.7, 8.0, 9 and MariaDB): the labels are then other texts, or none.
"""

from functools import cache
from itertools import pairwise

import numpy as np

from penstock.binlog.values.charset import TABLES, UNITS, UTF8
from penstock.binlog.values.text import decode_text, to_utf8

_CODECS = {"ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}
_BYTES = [bytes([byte]) for byte in range(256)]
_PAIRS = [bytes([first, second]) for first in range(128, 256) for second in range(256)]
_MOST = {"utf8mb3": 0xFFFF, "utf8": 0xFFFF, "ucs2": 0xFFFF, "ascii": 0x7F}
_UNKNOWN = "\ufffd"


def encode_enum_label(text: str, charset: str) -> bytes:
    """Return the bytes in which a server stores a label."""
    if text.isascii() and charset not in UNITS and charset != "swe7":
        return text.encode("ascii")
    if charset in UTF8 or charset in UNITS:
        most = _MOST.get(charset, 0x10FFFF)
        kept = "".join(char if ord(char) <= most else "?" for char in text)
        return kept.encode(_CODECS.get(charset, "utf-8"))
    if charset not in TABLES:
        return text.encode()
    return b"".join(_encoding_of(charset).get(char, b"?") for char in text)


def decode_label(raw: bytes, charset: str) -> str:
    """Return the text of a label from the bytes in which a server stores it."""
    return decode_text(charset, raw)


def normalize_label(label: str | bytes, charset: str) -> bytes:
    """Return a label of a statement as the server stores it; trailing spaces do not count, except in bytes."""
    if charset == "binary":
        return label if isinstance(label, bytes) else label.encode()
    text = decode_label(label, charset) if isinstance(label, bytes) else label
    return encode_enum_label(text.rstrip(" "), charset)


@cache
def _encoding_of(charset: str) -> dict[str, bytes]:
    """Return the bytes by which a charset encodes each character, for characters of one or two bytes: labels with
    longer ones are decoded, but never encoded."""
    sequences = _BYTES if TABLES[charset] == 1 else _BYTES + _PAIRS
    lengths = np.array([len(each) for each in sequences], np.int32)
    data = np.frombuffer(b"".join(sequences), np.uint8)
    bounds, raw = to_utf8(charset, data, (np.cumsum(lengths) - lengths).astype(np.int32), lengths)
    texts = [raw[begin:end].tobytes().decode() for begin, end in pairwise(bounds.tolist())]
    pairs = zip(reversed(texts), reversed(sequences), strict=True)
    return {text: sequence for text, sequence in pairs if len(text) == 1 and text != _UNKNOWN}
