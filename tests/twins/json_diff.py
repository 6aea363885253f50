"""JSON diffs in plain Python: `write_diff` writes one like the server, `patch` is the twin of the patching kernel."""

import re
from typing import Any

from tests.twins.json import BrokenJsonError, Members, characters, decode, key_order, quote, text

REPLACE, INSERT, REMOVE = range(3)
_LEG = re.compile(rb'\.(?:"((?:[^"\\]|\\.)*)"|([^."\[][^.\[]*))|\[(\d+)\]|\[last(?:-(\d+))?\]', re.DOTALL)
_ESCAPE = re.compile(rb"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_MEANT = dict(zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True))
Leg = str | tuple[int, bool]
"""A member, or a cell and whether it counts from the end."""


def write_diff(operation: int, legs: list[Leg], value: bytes = b"") -> bytes:
    path = path_text(legs).encode("utf-8", "surrogatepass")
    raw = bytes([operation]) + _length(len(path)) + path
    return raw if operation == REMOVE else raw + _length(len(value)) + value


def path_text(legs: list[Leg]) -> str:
    shown = "$"
    for leg in legs:
        if isinstance(leg, tuple):
            index, is_from_end = leg
            shown += f"[{index}]" if not is_from_end else f"[last-{index}]" if index else "[last]"
        else:
            # The server's rule is wider: any letters that make an identifier.
            shown += "." + (leg if re.fullmatch(r"[A-Za-z_$é字][A-Za-z_$é字0-9]*", leg) else _quoted(leg))
    return shown


def _quoted(key: str) -> str:
    """Halves of surrogate pairs are printed as they are, not as in a document."""
    escapes = r"\\(?:u(d[89a-f]..)|.)"
    return re.sub(escapes, lambda match: chr(int(match[1], 16)) if match[1] else match[0], quote(key))


def _length(size: int) -> bytes:
    if size < 251:
        return bytes([size])
    width, mark = (2, 252) if size < 1 << 16 else (3, 253) if size < 1 << 24 else (8, 254)
    return bytes([mark]) + size.to_bytes(width, "little")


def patch(before: bytes, diffs: bytes) -> str:
    root = [decode(before)]
    at = 0
    while at < len(diffs):
        operation = diffs[at]
        path, at = take(diffs, at + 1)
        _require(operation <= REMOVE and path[:1] == b"$")
        value = None
        if operation != REMOVE:
            raw, at = take(diffs, at)
            _require(bool(raw))
            value = decode(raw)
        _apply(root, operation, _legs(path[1:]), value)
    _require(_depth(root[0]) <= 100)
    return text(root[0])


def _require(is_fine: bool) -> None:
    if not is_fine:
        raise BrokenJsonError


def _depth(tree: Any) -> int:
    if not isinstance(tree, list):
        return 0
    inner = [value for _, value in tree] if isinstance(tree, Members) else tree
    return 1 + max(map(_depth, inner), default=0)


def take(raw: bytes, at: int) -> tuple[bytes, int]:
    _require(at < len(raw))
    size, at = raw[at], at + 1
    if size > 250:
        _require(size in {252, 253, 254})
        width = {252: 2, 253: 3, 254: 8}[size]
        _require(at + width <= len(raw))
        size, at = int.from_bytes(raw[at : at + width], "little"), at + width
    _require(at + size <= len(raw))
    return raw[at : at + size], at + size


def _legs(path: bytes) -> list[bytes | tuple[int, bool]]:
    legs: list[bytes | tuple[int, bool]] = []
    at = 0
    while at < len(path):
        match = _LEG.match(path, at)
        if match is None:
            raise BrokenJsonError
        quoted, plain, index, back = match.groups()
        if quoted is not None:
            legs.append(_ESCAPE.sub(_unescape, quoted))
        elif plain is not None:
            legs.append(plain)
        else:
            _require(int(index or back or 0) < 1 << 40)
            legs.append((int(index or back or 0), index is None))
        at = match.end()
    return legs


def _unescape(match: re.Match[bytes]) -> bytes:
    escape = match[1]
    if escape[:1] == b"u":
        _require(len(escape) == 5 and int(escape[1:], 16) < 128)
        return bytes([int(escape[1:], 16)])
    _require(escape[0] in _MEANT)
    return bytes([_MEANT[escape[0]]])


def _apply(root: list[Any], operation: int, legs: list[bytes | tuple[int, bool]], value: Any) -> None:
    """The root is the one cell of an array, so that it can be replaced like any other."""
    parent, index, is_there = root, 0, True
    _require(bool(legs) or operation == REPLACE)
    for leg in legs:
        _require(is_there)
        node = parent[index][1] if isinstance(parent, Members) else parent[index]
        _require(isinstance(node, list) and isinstance(node, Members) == isinstance(leg, bytes))
        parent = node
        index, is_there = _find(parent, leg)
    if operation == INSERT:
        leg = legs[-1]
        _require(isinstance(leg, tuple) or not is_there)
        parent.insert(index, value if isinstance(leg, tuple) else (characters(leg), value))
        return
    _require(is_there)
    if operation == REMOVE:
        del parent[index]
    elif isinstance(parent, Members):
        parent[index] = (parent[index][0], value)
    else:
        parent[index] = value


def _find(parent: list[Any], leg: bytes | tuple[int, bool]) -> tuple[int, bool]:
    """Where the child is or would be, and whether it is there."""
    if isinstance(leg, bytes):
        for i, (key, _) in enumerate(parent):
            if key_order(key) >= (len(leg), leg):
                return i, key_order(key)[1] == leg
        return len(parent), False
    number, is_from_end = leg
    index = len(parent) - 1 - number if is_from_end else number
    return min(max(index, 0), len(parent)), 0 <= index < len(parent)
