"""What kind of statement a text is, from its first words.

Most statements of a log are told by one word and cost one regular expression. CREATE, ALTER and DROP are told by the
word that names their object, with whatever the servers allow before it.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto
from itertools import islice

from penstock.schema.ddl.tokens import Token, TokenKind, tokenize
from penstock.schema.dialect import SqlDialect

_FIRST = re.compile(
    r"(?:[ \t\n\v\f\r;(]+|\#[^\n]*|--(?:[\x00-\x20][^\n]*|$)|/\*(?!M?!).*?\*/)*(?P<word>[A-Za-z]+|/\*M?!)?", re.DOTALL
)
_MAX_BEFORE = 60  # tokens before the object's word: a definer, an algorithm, a security clause


class StatementKind(Enum):
    """The kind of a statement, from its first words."""

    CREATE_TABLE = auto()
    ALTER_TABLE = auto()
    DROP_TABLE = auto()
    RENAME_TABLE = auto()
    TRUNCATE_TABLE = auto()
    CREATE_INDEX = auto()
    DROP_INDEX = auto()
    CREATE_DATABASE = auto()
    ALTER_DATABASE = auto()
    DROP_DATABASE = auto()
    CREATE_VIEW = auto()
    ALTER_VIEW = auto()
    DROP_VIEW = auto()
    CREATE_SEQUENCE = auto()
    ALTER_SEQUENCE = auto()
    DROP_SEQUENCE = auto()
    ROUTINE = auto()  # procedures, functions, packages, triggers, events
    ACCOUNT = auto()  # users, roles, privileges
    STORAGE = auto()  # tablespaces, log file groups, servers, resource groups, reference systems
    MAINTENANCE = auto()  # ANALYZE, OPTIMIZE, REPAIR, CHECK, FLUSH, CACHE
    TRANSACTION = auto()
    DATA = auto()
    OTHER = auto()

    @property
    def changes_tables(self) -> bool:
        """Return whether statements of this kind change the schema of tables, or which databases and views exist."""
        return self in _CHANGING


_CHANGING = frozenset(set(StatementKind) - {
    StatementKind.ALTER_VIEW, StatementKind.ALTER_SEQUENCE, StatementKind.ROUTINE, StatementKind.ACCOUNT,
    StatementKind.STORAGE, StatementKind.MAINTENANCE, StatementKind.TRANSACTION, StatementKind.DATA,
    StatementKind.OTHER,
})  # fmt: skip
_BY_WORD = {
    **dict.fromkeys(
        ["INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL", "DO", "SELECT", "WITH", "HANDLER", "IMPORT"],
        StatementKind.DATA,
    ),
    **dict.fromkeys(
        ["BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "START", "XA", "LOCK", "UNLOCK"],
        StatementKind.TRANSACTION,
    ),
    **dict.fromkeys(["GRANT", "REVOKE"], StatementKind.ACCOUNT),
    **dict.fromkeys(["ANALYZE", "OPTIMIZE", "REPAIR", "CHECK", "FLUSH", "CACHE"], StatementKind.MAINTENANCE),
    "TRUNCATE": StatementKind.TRUNCATE_TABLE,
}  # fmt: skip
_OBJECTS = {
    "TABLE": "TABLE", "TABLES": "TABLE", "INDEX": "INDEX", "DATABASE": "DATABASE", "SCHEMA": "DATABASE",
    "VIEW": "VIEW", "SEQUENCE": "SEQUENCE",
    **dict.fromkeys(["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE", "LIBRARY"], "ROUTINE"),
    **dict.fromkeys(["USER", "ROLE", "USERS"], "ACCOUNT"),
    **dict.fromkeys(
        ["TABLESPACE", "LOGFILE", "SERVER", "RESOURCE", "REFERENCE", "INSTANCE", "UNDO", "CATALOG", "PREPARE",
         "MASKING"],
        "STORAGE",
    ),
}  # fmt: skip


def classify_statement_text(text: str, dialect: SqlDialect) -> StatementKind:
    """Return the kind of a statement from its first words."""
    match = _FIRST.match(text)
    word = (match["word"] or "").upper() if match else ""
    if word in _BY_WORD:
        return _BY_WORD[word]
    if word in ("CREATE", "ALTER", "DROP", "RENAME", "SET") or word.startswith("/*"):
        return _classify_by_object(islice(tokenize(text, dialect), _MAX_BEFORE))
    return StatementKind.OTHER


def _classify_by_object(tokens: Iterator[Token]) -> StatementKind:
    """Return the kind of a CREATE, ALTER, DROP, RENAME or SET, by the object that it is about."""
    words = (token.word for token in tokens)
    verb = next(words, "")
    while verb == "SET":
        setting = next(words, "")
        if setting in ("PASSWORD", "ROLE") or (setting == "DEFAULT" and next(words, "") == "ROLE"):
            return StatementKind.ACCOUNT
        # MariaDB's SET STATEMENT variable = value FOR statement
        if setting != "STATEMENT" or "FOR" not in words:
            return StatementKind.OTHER
        verb = next(words, "")
    if verb in _BY_WORD:
        return _BY_WORD[verb]
    if verb not in ("CREATE", "ALTER", "DROP", "RENAME"):
        return StatementKind.OTHER
    named = _find_object(tokens)
    if named in ("ROUTINE", "ACCOUNT", "STORAGE"):
        return StatementKind[named]
    return getattr(StatementKind, f"{verb}_{named}", StatementKind.OTHER)


def _find_object(tokens: Iterator[Token]) -> str:
    """Return what kind of object is created, altered or dropped; the name of a definer is skipped."""
    is_quiet = False
    for token in tokens:
        if token.kind is TokenKind.END:
            return ""
        if token.word in ("=", "@"):
            is_quiet = True
        elif is_quiet:
            is_quiet = False
        elif token.word in _OBJECTS:
            return _OBJECTS[token.word]
    return ""
