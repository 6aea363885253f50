"""Passwords and their hashes in statements: where they are, and the same statement without them.

IDENTIFIED BY 'x'   IDENTIFIED WITH plugin AS 'hash'   IDENTIFIED VIA plugin USING PASSWORD('x')
REPLACE 'x'         SET PASSWORD FOR u = 'hash'        CREATE SERVER … OPTIONS (PASSWORD 'x')
"""

from collections.abc import Iterator

from penstock.schema.ddl.kind import StatementKind
from penstock.schema.ddl.problem import DdlError
from penstock.schema.ddl.tokens import TokenKind, end_of, scan
from penstock.schema.dialect import SqlDialect

MASK = "'***'"
_SHORTEST = len(MASK)
_WITH_SECRETS = {StatementKind.ACCOUNT, StatementKind.STORAGE}
_LITERALS = {TokenKind.STRING, TokenKind.HEX, TokenKind.BITS}
_BEFORE = {"BY", "AS", "USING", "PASSWORD", "OLD_PASSWORD", "REPLACE", "="}


def may_have_secrets(kind: StatementKind) -> bool:
    """Return whether statements of this kind may hold a password."""
    return kind in _WITH_SECRETS


def masked_statement(text: str, kind: StatementKind, dialect: SqlDialect) -> str:
    """Return the text with `'***'` for each password and hash; other kinds of statements as they are."""
    if kind not in _WITH_SECRETS:
        return text
    try:
        return _replaced(text, [(begin, end, MASK) for begin, end in _secrets(text, dialect)])
    except DdlError:
        return _only_verb(text)


def masked_in_place(text: str, kind: StatementKind, dialect: SqlDialect) -> str:
    """Return the same as `masked_statement` with the length of the text: spaces at its end fill what is missing."""
    if kind not in _WITH_SECRETS:
        return text
    try:
        found = [(begin, end, _fitting(end - begin)) for begin, end in _secrets(text, dialect)]
    except DdlError:
        return _only_verb(text)[: len(text)].ljust(len(text))
    return _replaced(text, found).ljust(len(text))


def _fitting(size: int) -> str:
    """Return a mask that is not longer than the literal that it replaces."""
    return MASK if size >= _SHORTEST else "'" + "*" * (size - 2) + "'"


def _only_verb(text: str) -> str:
    """Return only the verb of a statement that cannot be split into words: it is not known where its secrets are."""
    return f"{text.split(None, 1)[0]} ***" if text.split() else text


def _replaced(text: str, spans: list[tuple[int, int, str]]) -> str:
    parts, at = list[str](), 0
    for begin, end, mask in spans:
        parts += [text[at:begin], mask]
        at = end
    return "".join(parts) + text[at:] if parts else text


def _secrets(text: str, dialect: SqlDialect) -> Iterator[tuple[int, int]]:
    """Yield where each secret begins and ends."""
    before = ""
    for token in scan(text, dialect):
        is_quoted = token.kind is TokenKind.NAME and text[token.at] == '"'  # a text, whatever sql_mode says
        if (token.kind in _LITERALS or is_quoted) and before in _BEFORE:
            yield token.at, end_of(text, token, dialect)
            before = ""
        elif token.word != "(" or before not in ("PASSWORD", "OLD_PASSWORD"):
            before = token.word
