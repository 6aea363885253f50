"""The hand that goes over the tokens of one statement: what the parsers of this room are written in."""

from typing import NoReturn

from penstock.model import TableName
from penstock.schema.ddl.problem import DdlError
from penstock.schema.ddl.tokens import Token, TokenKind, scan
from penstock.schema.dialect import SqlDialect, SqlMode

_CLOSING = {"(": ")", "{": "}"}


class TokenReader:
    """`token` is the one that comes next."""

    def __init__(self, text: str, dialect: SqlDialect, database: str = "") -> None:
        self.text, self.dialect, self.database = text, dialect, database
        self._tokens = list(scan(text, dialect))
        self._at = 0
        self.token: Token = self._tokens[0]

    @property
    def is_mariadb(self) -> bool:
        return self.dialect.server.is_mariadb

    def has(self, mode: SqlMode) -> bool:
        return self.dialect.has(mode)

    @property
    def is_done(self) -> bool:
        return self.token.kind is TokenKind.END

    @property
    def word(self) -> str:
        return self.token.word

    def ahead(self, count: int) -> Token:
        return self._tokens[min(self._at + count, len(self._tokens) - 1)]

    @property
    def before(self) -> Token:
        """Return the token that was read last."""
        return self._tokens[max(self._at - 1, 0)]

    def next(self) -> Token:
        token = self.token
        if self._at < len(self._tokens) - 1:
            self._at += 1
            self.token = self._tokens[self._at]
        return token

    def sees(self, *words: str) -> bool:
        """Return whether these words come next."""
        if self.token.word != words[0]:
            return False
        return len(words) == 1 or all(self.ahead(i).word == word for i, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        """Take these if all of them come next."""
        if self.token.word != words[0] or not self.sees(*words):
            return False
        for _ in words:
            self.next()
        return True

    def accept_any(self, *words: str) -> str:
        """Take one of these, if one comes next, and say which."""
        word = self.token.word
        if word in words and word:
            self.next()
            return word
        return ""

    def expect(self, *words: str) -> None:
        for word in words:
            if self.token.word != word:
                self.fail(f"{word} is missing")
            self.next()

    def fail(self, what: str) -> NoReturn:
        raise DdlError(what, self.text, self.token.at)

    def fail_as_unknown(self, where: str) -> NoReturn:
        shown = self.token.value or "nothing"
        self.fail(f"{where} has {shown!r}, which is not known there")

    def name(self, what: str = "a name") -> str:
        if self.token.kind in (TokenKind.WORD, TokenKind.NAME):
            return self.next().value
        return self.fail(f"{what} is missing")

    def name_or_text(self, what: str = "a name") -> str:
        return self.next().value if self.token.kind is TokenKind.STRING else self.name(what)

    def table(self) -> TableName:
        first = self.name("a table's name")
        if self.word != ".":
            return TableName(self.database, first)
        self.next()
        return TableName(first, self._part())

    def column(self) -> str:
        """Read a name that may have a table and a database before it, and return its last part."""
        name = self.name("a column's name")
        while self.accept("."):
            name = self._part()
        return name

    def _part(self) -> str:
        """Read a part of a name; after a dot it may look like a number."""
        if self.token.kind is TokenKind.NUMBER and self.token.value.isalnum():
            return self.next().value
        return self.name("a name after the dot")

    def number(self) -> int:
        token = self.token
        if token.kind is TokenKind.NUMBER and token.value.isdigit():
            return int(self.next().value)
        if token.kind is TokenKind.HEX:
            return int(self.next().value, 16)
        return self.fail("a number is missing")

    def length(self) -> int:
        """Return a number of which only the whole part counts: servers take DECIMAL(19.5) for DECIMAL(19)."""
        token = self.token
        whole, point, part = token.value.partition(".")
        if token.kind is TokenKind.NUMBER and point and f"0{whole}{part}".isdigit():
            self.next()
            return int(whole or 0)
        return self.number()

    def string(self) -> str:
        if self.token.kind is not TokenKind.STRING:
            self.fail("a text is missing")
        return self.next().value

    def skip_group(self) -> None:
        """Skip from an opening bracket to the one that closes it."""
        closing = _CLOSING.get(self.word) or self.fail("( is missing")
        self.next()
        while self.word != closing:
            if self.is_done:
                self.fail(f"{closing} is missing")
            if self.word in _CLOSING:
                self.skip_group()
            else:
                self.next()
        self.next()

    def skip_clause(self, *ends: str) -> None:
        """Skip to the next comma or closing bracket of this level, one of `ends`, or the end."""
        while not self.is_done and self.word not in (",", ")", ";", *ends):
            if self.word in _CLOSING:
                self.skip_group()
            else:
                self.next()

    def skip_rest(self) -> None:
        while not self.is_done and self.word != ";":
            self.next()

    def end(self) -> None:
        """Check that nothing follows except a semicolon."""
        self.accept(";")
        if not self.is_done:
            self.fail_as_unknown("the end of the statement")
