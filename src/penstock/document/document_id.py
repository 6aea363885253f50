"""Ids of documents, from keys: readable, never ambiguous, and never longer than an index takes.

| key                        | id                                     |
|----------------------------|----------------------------------------|
| 7                          | `7`                                    |
| bytes                      | their hexadecimal digits               |
| ("a:b", 7)                 | `a%3Ab:7`                              |
| the empty text             | `%`                                    |
| a text that begins with %  | `%25` and the rest                     |
| longer than 512 bytes      | `%#` and the SHA-256 of that id in hex |
"""

import hashlib
from collections.abc import Sequence
from decimal import Decimal

from penstock.document.sql_text import Key, KeyValue, value_from_text
from penstock.model import Column

MAX_ID_BYTES = 512


def document_id(key: Key) -> str:
    """Return the id of the document whose root row has this key."""
    if len(key) == 1:
        if type(key[0]) is int:
            return str(key[0])
        text = key_text(key[0])
        if not text:
            return "%"
        if text.startswith("%"):
            text = f"%25{text[1:]}"
    else:
        text = ":".join(key_text(value).replace("%", "%25").replace(":", "%3A") for value in key)
    raw = text.encode()
    return text if len(raw) <= MAX_ID_BYTES else f"%#{hashlib.sha256(raw).hexdigest()}"


def parse_document_id(text: str, columns: Sequence[Column]) -> Key | None:
    """Return the key of a document with this id; None when the id is a checksum."""
    if text.startswith("%#"):
        return None
    if len(columns) == 1:
        parts = ["" if text == "%" else text.replace("%25", "%", 1) if text.startswith("%") else text]
    else:
        parts = [part.replace("%3A", ":").replace("%25", "%") for part in text.split(":")]
    return tuple(value_from_text(column, part) for column, part in zip(columns, parts, strict=True))


def routing_text(value: KeyValue | None) -> str | None:
    """Return the routing of a document whose routing column has this value; the empty text is none, as for indexes."""
    return None if value is None else key_text(value) or None


def key_text(value: KeyValue) -> str:
    """Return the text of one value of a key."""
    if isinstance(value, bytes):
        return value.hex()
    return format(value, "f") if isinstance(value, Decimal) else str(value)
