"""canal's passwords: a client proves that it knows one without sending it.

stored   SHA1(SHA1(password)), as hex digits
token    SHA1(password) XOR SHA1(seed + SHA1(SHA1(password)))
"""

import hashlib
import hmac

SEED_BYTES = 8


def hash_for_storage(password: str) -> str:
    """Return the form in which a password is stored: SHA1(SHA1(password)) as hex digits."""
    return _sha1(_sha1(password.encode())).hex()


def scramble_password(password: str, seed: bytes) -> bytes:
    """Return the token that a client sends for a password, as hex digits; empty for no password."""
    if not password:
        return b""
    once = _sha1(password.encode())
    return _xor(once, _sha1(seed + _sha1(once))).hex().encode()


def is_valid_token(token: bytes, seed: bytes, stored: str) -> bool:
    """Tell whether a token proves the stored password; without a stored password any token is valid."""
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
    """Return the SHA-1 digest."""
    return hashlib.sha1(raw, usedforsecurity=False).digest()


def _xor(left: bytes, right: bytes) -> bytes:
    """Return two byte strings of the same length combined by XOR."""
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
