"""canal's passwords: a client proves that it knows one without sending it.

stored   SHA1(SHA1(password)), as hex digits
token    SHA1(password) XOR SHA1(seed + SHA1(SHA1(password)))
"""

import hashlib
import hmac

SEED_BYTES = 8


def stored_form(password: str) -> str:
    return _sha1(_sha1(password.encode())).hex()


def token_of(password: str, seed: bytes) -> bytes:
    """As it is sent: hex digits; nothing for no password."""
    if not password:
        return b""
    once = _sha1(password.encode())
    return _xor(once, _sha1(seed + _sha1(once))).hex().encode()


def is_right(token: bytes, seed: bytes, stored: str) -> bool:
    """Nothing stored: anybody may."""
    if not stored:
        return True
    known = bytes.fromhex(stored)
    try:
        sent = bytes.fromhex(token.decode("ascii"))
    except ValueError:
        return False
    if len(sent) != len(known):
        return False
    return hmac.compare_digest(_sha1(_xor(sent, _sha1(seed + known))), known)


def _sha1(raw: bytes) -> bytes:
    return hashlib.sha1(raw, usedforsecurity=False).digest()


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
