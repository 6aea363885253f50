"""Passwords and their hashes in statements: where they are, and the same statement without them.

IDENTIFIED BY 'x'   IDENTIFIED WITH plugin AS 'hash'   IDENTIFIED VIA plugin USING PASSWORD('x')
REPLACE 'x'         SET PASSWORD FOR u = 'hash'        CREATE SERVER … OPTIONS (PASSWORD 'x')

The body of a procedure, function, trigger or event may hold such statements among others. There a literal counts only
right after PASSWORD, or inside a statement that has said IDENTIFIED or SET PASSWORD: `SET name = 'x'` stays as it is.
"""

import re
from collections.abc import Iterator

from penstock.schema.ddl.kind import StatementKind
from penstock.schema.ddl.problem import DdlError
from penstock.schema.ddl.tokens import TokenKind, token_end, tokenize
from penstock.schema.dialect import SqlDialect

MASK = "'***'"
_SHORTEST = len(MASK)
_WITH_SECRETS = {StatementKind.ACCOUNT, StatementKind.STORAGE, StatementKind.ROUTINE}
_LITERALS = {TokenKind.STRING, TokenKind.HEX, TokenKind.BITS}
_BEFORE = {"BY", "AS", "USING", "PASSWORD", "OLD_PASSWORD", "REPLACE", "="}
_FUNCTIONS = {"PASSWORD", "OLD_PASSWORD"}
_MENTIONED = re.compile("IDENTIFIED|PASSWORD", re.IGNORECASE)


def may_have_secrets(kind: StatementKind) -> bool:
    """Return whether statements of this kind may hold a password."""
    return kind in _WITH_SECRETS


def mask_secrets(text: str, kind: StatementKind, dialect: SqlDialect) -> str:
    """Return a statement with `'***'` for each password and hash of one; statements without secrets are returned as
    they are."""
    if kind not in _WITH_SECRETS:
        return text
    try:
        return _replace_spans(text, [(begin, end, MASK) for begin, end in _secrets(text, kind, dialect)])
    except DdlError:
        return _only_verb(text)


def mask_secrets_in_place(text: str, kind: StatementKind, dialect: SqlDialect) -> str:
    """Return a masked statement of the same length as the text: spaces at its end fill what is missing."""
    if kind not in _WITH_SECRETS:
        return text
    try:
        replacements = [(begin, end, _fit_mask(end - begin)) for begin, end in _secrets(text, kind, dialect)]
    except DdlError:
        return _only_verb(text)[: len(text)].ljust(len(text))
    return _replace_spans(text, replacements).ljust(len(text))


def _fit_mask(size: int) -> str:
    """Return a mask that is not longer than the literal that it replaces."""
    return MASK if size >= _SHORTEST else "'" + "*" * (size - 2) + "'"


def _only_verb(text: str) -> str:
    """Return only the verb of a statement that cannot be split into words: it is not known where its secrets are."""
    return f"{text.split(None, 1)[0]} ***" if text.split() else text


def _replace_spans(text: str, spans: list[tuple[int, int, str]]) -> str:
    parts, at = list[str](), 0
    for begin, end, mask in spans:
        parts += [text[at:begin], mask]
        at = end
    return "".join(parts) + text[at:] if parts else text


def _secrets(text: str, kind: StatementKind, dialect: SqlDialect) -> Iterator[tuple[int, int]]:
    """Yield where each secret begins and ends."""
    is_routine = kind is StatementKind.ROUTINE
    if is_routine and not _MENTIONED.search(text):
        return
    before, is_open = "", not is_routine
    for token in tokenize(text, dialect):
        is_quoted = token.kind is TokenKind.NAME and text[token.at] == '"'  # a text, whatever sql_mode says
        if is_routine and token.word == ";":
            is_open = False
        elif token.word == "IDENTIFIED" or (token.word == "PASSWORD" and before == "SET"):
            is_open = True
        counts = before in _BEFORE if is_open else before in _FUNCTIONS
        if counts and (token.kind in _LITERALS or is_quoted):
            yield token.at, token_end(text, token, dialect)
            before = ""
        elif token.word != "(" or before not in _FUNCTIONS:
            before = token.word
