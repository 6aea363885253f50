"""Translates regular expressions from the syntax of Python's `re` to that of RE2, with the same meaning.

What `re` does not know either is left to RE2 to complain about.
"""

import re

# In a class, and with brackets around them outside of one: `re` goes by Unicode, RE2 by ASCII.
_CLASSES = {"w": r"\pL\pN_", "d": r"\p{Nd}", "s": r"\t-\r\x{1c}-\x{20}\x{85}\x{a0}\pZ"}
_TOKEN = re.compile(
    r"""
    \\u(?P<short>[0-9A-Fa-f]{4}) | \\U(?P<long>[0-9A-Fa-f]{8})
    | \\(?P<octal>[0-3][0-7]{2}) | \\(?P<escaped>.)
    | (?P<open>\[\^?\]?) | (?P<close>\]) | \{(?P<upto>,[0-9]*\}) | (?P<named>\(\?P?<[A-Za-z_]\w*>) | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


class UnsupportedPatternError(ValueError):
    """A regular expression has something that RE2 cannot do, or understands differently."""


def translate_to_re2(text: str) -> str:
    """Return a pattern in RE2's syntax that matches the same as `text` does in Python's `re`. Raises
    UnsupportedPatternError."""
    translated: list[str] = []
    at, in_class = 0, False
    while (token := _TOKEN.match(text, at)) is not None:
        at, whole, kind = token.end(), token[0], token.lastgroup or ""
        value = token[kind]
        if kind == "escaped":
            translated.append(_translate_escape(value, in_class))
        elif kind in ("short", "long"):
            translated.append(f"\\x{{{value}}}")
        elif kind == "octal":
            translated.append(f"\\x{{{int(value, 8):x}}}")
        elif in_class and kind != "close":
            # RE2 has names in a class, [:alpha:], and no sets in sets; of a bracket only the first character counts.
            at = token.start() + 1
            translated.append("\\[" if whole[0] == "[" else whole[0])
        elif kind == "open":
            in_class = True
            translated.append(whole)
        elif kind == "close":
            in_class = False
            translated.append(whole)
        elif kind == "upto":
            translated.append(f"{{0{value}")
        elif kind == "named":
            translated.append("(")
        else:
            translated.append(whole)
    return "".join(translated) + text[at:]


def _translate_escape(char: str, in_class: bool) -> str:
    """Return RE2's form of the escape `\\` + `char`. Raises UnsupportedPatternError."""
    name = char.lower()
    if name in _CLASSES and (char == name or not in_class):
        inside = _CLASSES[name]
        return inside if in_class else f"[{'' if char == name else '^'}{inside}]"
    if char == "D":
        return r"\P{Nd}"
    if char in "WS":
        raise UnsupportedPatternError(f"\\{char} in a class, which a client's filter has not")
    if char in "123456789":
        raise UnsupportedPatternError("a back reference, which a client's filter has not")
    if char in "bB":
        raise UnsupportedPatternError(f"\\{char}, which a client's filter has not")
    if char in "QEC":
        raise UnsupportedPatternError(f"\\{char}, which means nothing")
    if char == "Z" and not in_class:
        return r"\z"
    if char == "_" or not char.isascii():
        return char
    return f"\\{char}"
