"""Reads the tokens of one statement one after the other: what the parsers of this room are written with."""

from typing import NoReturn

from penstock.model import TableName
from penstock.schema.ddl.problem import DdlError
from penstock.schema.ddl.tokens import Token, TokenKind, tokenize
from penstock.schema.dialect import SqlDialect, SqlMode

_CLOSING = {"(": ")", "{": "}"}


class TokenReader:
    """Reads the tokens of one statement; `token` is the one that comes next."""

    def __init__(self, text: str, dialect: SqlDialect, database: str = "") -> None:
        self.text, self.dialect, self.database = text, dialect, database
        self._tokens = list(tokenize(text, dialect))
        self._at = 0
        self.token: Token = self._tokens[0]

    @property
    def is_mariadb(self) -> bool:
        """Return whether the statement was run by a MariaDB server."""
        return self.dialect.server.is_mariadb

    def has_mode(self, mode: SqlMode) -> bool:
        """Return whether the session had this bit of sql_mode set."""
        return self.dialect.has_mode(mode)

    @property
    def is_done(self) -> bool:
        """Return whether all tokens were read."""
        return self.token.kind is TokenKind.END

    @property
    def word(self) -> str:
        """Return the next token as a word in capitals; empty for what is quoted."""
        return self.token.word

    def peek(self, count: int) -> Token:
        """Return the token that comes `count` tokens after the next one."""
        return self._tokens[min(self._at + count, len(self._tokens) - 1)]

    @property
    def before(self) -> Token:
        """Return the token that was read last."""
        return self._tokens[max(self._at - 1, 0)]

    def next(self) -> Token:
        """Return the next token and step over it."""
        token = self.token
        if self._at < len(self._tokens) - 1:
            self._at += 1
            self.token = self._tokens[self._at]
        return token

    def sees(self, *words: str) -> bool:
        """Return whether these words come next."""
        if self.token.word != words[0]:
            return False
        return len(words) == 1 or all(self.peek(i).word == word for i, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        """Step over these words if all of them come next; return whether they did."""
        if self.token.word != words[0] or not self.sees(*words):
            return False
        for _ in words:
            self.next()
        return True

    def accept_any(self, *words: str) -> str:
        """Step over one of these words if one comes next; return it, or an empty text."""
        word = self.token.word
        if word in words and word:
            self.next()
            return word
        return ""

    def expect(self, *words: str) -> None:
        """Step over these words; raise DdlError when other words come next."""
        for word in words:
            if self.token.word != word:
                self.fail(f"{word} is missing")
            self.next()

    def fail(self, what: str) -> NoReturn:
        """Raise DdlError with this message, at the next token."""
        raise DdlError(what, self.text, self.token.at)

    def fail_as_unknown(self, where: str) -> NoReturn:
        """Raise DdlError: the next token is not known in this place."""
        shown = self.token.value or "nothing"
        self.fail(f"{where} has {shown!r}, which is not known there")

    def read_name(self, what: str = "a name") -> str:
        """Read a name, plain or quoted, and return it. Raises DdlError, which calls it `what`, when no name comes
        next."""
        if self.token.kind in (TokenKind.WORD, TokenKind.NAME):
            return self.next().value
        return self.fail(f"{what} is missing")

    def read_name_or_text(self, what: str = "a name") -> str:
        """Read a name, or a quoted text that is used as one, and return it."""
        return self.next().value if self.token.kind is TokenKind.STRING else self.read_name(what)

    def read_table(self) -> TableName:
        """Read the name of a table, with the statement's database where it names none."""
        first = self.read_name("a table's name")
        if self.word != ".":
            return TableName(self.database, first)
        self.next()
        return TableName(first, self._read_part())

    def read_column(self) -> str:
        """Read the name of a column, which may have a table and a database before it, and return its last part."""
        name = self.read_name("a column's name")
        while self.accept("."):
            name = self._read_part()
        return name

    def _read_part(self) -> str:
        """Read a part of a name; after a dot it may look like a number."""
        if self.token.kind is TokenKind.NUMBER and self.token.value.isalnum():
            return self.next().value
        return self.read_name("a name after the dot")

    def read_number(self) -> int:
        """Read a whole number, decimal or hexadecimal, and return it. Raises DdlError when no number comes next."""
        token = self.token
        if token.kind is TokenKind.NUMBER and token.value.isdigit():
            return int(self.next().value)
        if token.kind is TokenKind.HEX:
            return int(self.next().value, 16)
        return self.fail("a number is missing")

    def read_length(self) -> int:
        """Read a number of which only the whole part counts: servers take DECIMAL(19.5) for DECIMAL(19)."""
        token = self.token
        whole, point, part = token.value.partition(".")
        if token.kind is TokenKind.NUMBER and point and f"0{whole}{part}".isdigit():
            self.next()
            return int(whole or 0)
        return self.read_number()

    def read_string(self) -> str:
        """Read a quoted text and return it. Raises DdlError when no quoted text comes next."""
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
        """Skip to the end of the statement."""
        while not self.is_done and self.word != ";":
            self.next()

    def expect_end(self) -> None:
        """Raise DdlError when something other than a semicolon follows."""
        self.accept(";")
        if not self.is_done:
            self.fail_as_unknown("the end of the statement")
