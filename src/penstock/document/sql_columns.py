"""Which columns an SQL expression of a document spec uses."""

import re
from functools import lru_cache

from penstock.model import TableSchema
from penstock.schema.ddl.problem import DdlError
from penstock.schema.ddl.tokens import TokenKind, tokenize
from penstock.schema.dialect import SqlDialect

_DIALECT = SqlDialect()
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`""", re.DOTALL)
_COMMENT = re.compile(r"--|#|/\*")


@lru_cache(maxsize=1000)
def _read_names(text: str) -> frozenset[str]:
    """Return all words and quoted names of an expression, in lower case; ValueError for what is not one expression."""
    if _COMMENT.search(_QUOTED.sub("''", text)):
        raise ValueError(f"the SQL {text!r} has a comment, which would hide what comes behind it")
    names: set[str] = set()
    depth = 0
    try:
        for token in tokenize(text, _DIALECT):
            if token.word == ";":
                raise ValueError(f"the SQL {text!r} must be one expression")
            depth += (token.word == "(") - (token.word == ")")
            if depth < 0:
                raise ValueError(f"the SQL {text!r} closes a parenthesis that it did not open")
            if token.kind in (TokenKind.WORD, TokenKind.NAME):
                names.add(token.value.casefold())
    except DdlError as error:
        raise ValueError(f"the SQL {text!r} cannot be read: {error}") from None
    if depth:
        raise ValueError(f"the SQL {text!r} has a parenthesis without an end")
    return frozenset(names)


def find_columns(text: str, table: TableSchema) -> frozenset[str]:
    """Return the columns of a table that an expression names. A function of the same name counts as a use, too: it is
    better to look at a document too often than too rarely."""
    if not text:
        return frozenset()
    names = _read_names(text)
    return frozenset(column.name for column in table.declared_columns if column.name.casefold() in names)
