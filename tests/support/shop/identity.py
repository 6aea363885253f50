"""The id of a document, from the key of its root row."""

import hashlib

MAX_BYTES = 512


def document_id(*key: int | str) -> str:
    """Return the id: the text of the key; parts of a composite key are escaped and joined by colons."""
    if len(key) > 1:
        text = ":".join(str(part).replace("%", "%25").replace(":", "%3A") for part in key)
    else:
        text = str(key[0])
        if not text:
            text = "%"
        elif text.startswith("%"):
            text = f"%25{text[1:]}"
    size = len(text.encode())
    return text if size <= MAX_BYTES else f"%#{hashlib.sha256(text.encode()).hexdigest()}"
