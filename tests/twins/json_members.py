"""Twin of the kernel that finds members of JSON objects: Python's own reader, member by member."""

from json import JSONDecodeError, JSONDecoder
from json.decoder import scanstring  # type: ignore[attr-defined] - where a string ends

_DECODER = JSONDecoder()
_BLANKS = " \t\n\r"


def members_of(text: str) -> dict[str, str]:
    """Return the members of a JSON object, each as the text that its value has; none of what is no object."""
    members: dict[str, str] = {}
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        return {}
    at = _skip(text, at + 1)
    try:
        while text[at : at + 1] == '"':
            name, at = scanstring(text, at + 1, True)
            first = _skip(text, _skip(text, at) + 1)
            _, at = _DECODER.raw_decode(text, first)
            members[name] = text[first:at]
            at = _skip(text, at)
            if text[at : at + 1] != ",":
                break
            at = _skip(text, at + 1)
    except (JSONDecodeError, StopIteration):
        return members
    return members


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at
