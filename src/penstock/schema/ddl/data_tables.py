"""The tables that an INSERT, UPDATE, DELETE or LOAD DATA changes, from its text.

Only as much of the text is read as names tables: the values of a long INSERT are not. A table that is only read, as in
`UPDATE a JOIN b … SET a.x = b.y`, is not changed. Where an unqualified column leaves it open which of several tables is
meant, all of them count.
"""

from collections.abc import Iterator

from penstock.model import TableName
from penstock.schema.ddl.problem import DdlError
from penstock.schema.ddl.tokens import Token, TokenKind, tokenize
from penstock.schema.dialect import SqlDialect

_MODIFIERS = {"LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "QUICK", "IGNORE", "INTO"}
_VERBS = {"INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD"}
_NO_ALIAS = {
    "SET", "WHERE", "ORDER", "LIMIT", "USING", "FROM", "ON", "JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "OUTER",
    "NATURAL", "STRAIGHT_JOIN", "FORCE", "USE", "IGNORE", "PARTITION", "RETURNING", "FOR",
}  # fmt: skip
_ENDS_OF_REFERENCES = {"SET", "WHERE", "ORDER", "LIMIT", "RETURNING", ";"}
_NAMES = {TokenKind.WORD, TokenKind.NAME}
_OPEN, _CLOSE = "(", ")"


def find_data_tables(text: str, dialect: SqlDialect, database: str = "") -> tuple[TableName, ...]:
    """Return the tables that a statement of kind DATA changes, in its order; empty where they cannot be told."""
    try:
        return tuple(dict.fromkeys(_DmlStatement(text, dialect, database).changed_tables()))
    except DdlError:
        return ()


def find_data_verb(text: str, dialect: SqlDialect) -> str:
    """Return the verb of a statement of kind DATA, such as INSERT; empty where it cannot be told."""
    try:
        return _DmlStatement(text, dialect, "").verb()
    except DdlError:
        return ""


class _DmlStatement:
    """Walks over the tokens of one statement; `token` is the one that comes next."""

    def __init__(self, text: str, dialect: SqlDialect, database: str) -> None:
        self._text, self._database = text, database
        self._tokens: Iterator[Token] = tokenize(text, dialect)
        self.token = next(self._tokens)
        # By alias, or by the table's own name where it has none: the tables that the statement refers to. Tables of
        # two databases may have one name.
        self._referred: dict[str, list[TableName]] = {}

    @property
    def _word(self) -> str:
        """Return the next token as a word."""
        return self.token.word

    @property
    def _is_done(self) -> bool:
        """Return whether all tokens were read."""
        return self.token.kind is TokenKind.END

    def _next(self) -> Token:
        """Return the next token and step over it."""
        token = self.token
        if not self._is_done:
            self.token = next(self._tokens)
        return token

    def changed_tables(self) -> list[TableName]:
        """Return the tables that the statement changes, in its order."""
        verb = self.verb()
        while self._word in _MODIFIERS:
            self._next()
        match verb:
            case "INSERT" | "REPLACE":
                return [self._read_table()]
            case "LOAD":
                return self._load_target()
            case "UPDATE":
                return self._update_targets()
            case "DELETE":
                return self._delete_targets()
            case _:
                return []

    def verb(self) -> str:
        """Return the verb of the statement, after comments, brackets, MariaDB's SET STATEMENT … FOR and common table
        expressions."""
        if self._word == "SET":
            while not self._is_done and self._next().word != "FOR":
                pass
        if self._word == "WITH":
            while self._word not in _VERBS and not self._is_done:
                self._skip_one()
        return self._next().word

    def _load_target(self) -> list[TableName]:
        """Return the table of `LOAD DATA … INTO TABLE name`."""
        before = ""
        while not self._is_done:
            if before == "INTO" and self._word == "TABLE":
                self._next()
                return [self._read_table()]
            before = self._next().word
        return []

    def _update_targets(self) -> list[TableName]:
        """Return the tables whose columns an UPDATE sets."""
        self._read_references()
        if self._word == "SET":
            self._next()
        everyone, targets = [table for tables in self._referred.values() for table in tables], list[TableName]()
        while not self._is_done and self._word not in _ENDS_OF_REFERENCES and len(everyone) > 1:
            column = self._read_name_parts()
            targets += self._resolve(column[:-1]) if len(column) > 1 else everyone
            while not self._is_done and self._word not in (",", *_ENDS_OF_REFERENCES):
                self._skip_one()
            if self._word == ",":
                self._next()
        return targets or everyone

    def _delete_targets(self) -> list[TableName]:
        """Return the tables of `DELETE FROM t …`, `DELETE FROM a, b USING …`, `DELETE a, b FROM …`."""
        is_after = self._word == "FROM"
        if is_after:
            self._next()
        targets = [self._read_delete_target()]
        while self._word == ",":
            self._next()
            targets.append(self._read_delete_target())
        if self._word in ("USING", "FROM"):
            self._next()
            self._read_references()
            return [table for target in targets for table in self._resolve(target)]
        if not is_after:
            self._fail("FROM is missing")
        return [self._qualify(target) for target in targets]

    def _read_delete_target(self) -> list[str]:
        """Return the name of a table to delete from, which may have `.*` behind it."""
        parts = self._read_name_parts()
        return parts[:-1] if parts[-1] == "*" else parts

    def _resolve(self, parts: list[str]) -> list[TableName]:
        """Return the tables that a name or an alias may stand for."""
        if len(parts) == 1:
            return self._referred.get(parts[0].lower(), [self._qualify(parts)])
        return [self._qualify(parts)]

    def _read_references(self) -> None:
        """Read the table names: they stand first, and behind a comma, a JOIN and an opening bracket."""
        depth, is_due = 0, True
        while not self._is_done and not (depth == 0 and self._word in _ENDS_OF_REFERENCES):
            word = self._word
            if word == _OPEN and not is_due:
                self._skip_one()  # a condition, a list of columns or of partitions
            elif word == _OPEN:
                self._next()
                if self._word in ("SELECT", "WITH", "VALUES", "TABLE"):
                    self._skip_to_close()
                    is_due = False
                else:
                    depth += 1
            elif word == _CLOSE:
                self._next()
                depth -= 1
            elif word in (",", "JOIN", "STRAIGHT_JOIN"):
                self._next()
                is_due = True
            elif is_due and self.token.kind in _NAMES:
                self._read_reference()
                is_due = False
            else:
                self._next()

    def _read_reference(self) -> None:
        """Read a table reference with its alias."""
        table = self._read_table()
        if self._word == "PARTITION":
            self._next()
            self._skip_one()
        if self._word == "AS":
            self._next()
        alias = table.table
        if self.token.kind in _NAMES and self._word not in _NO_ALIAS:
            alias = self._next().value
        self._referred.setdefault(alias.lower(), []).append(table)

    def _read_table(self) -> TableName:
        """Read the name of a table."""
        return self._qualify(self._read_name_parts())

    def _qualify(self, parts: list[str]) -> TableName:
        """Return the table of a name in parts, with the statement's database where it names none."""
        return TableName(parts[-2] if len(parts) > 1 else self._database, parts[-1])

    def _read_name_parts(self) -> list[str]:
        """Read a name with dots, and return its parts."""
        parts = [self._read_name()]
        while self._word == ".":
            self._next()
            parts.append(self._read_name())
        return parts

    def _read_name(self) -> str:
        """Read one part of a name."""
        if self.token.kind not in {*_NAMES, TokenKind.NUMBER} and self._word != "*":
            self._fail("a table's name is missing")
        return self._next().value

    def _skip_one(self) -> None:
        """Skip one token, or everything up to the bracket that closes the one that opens here."""
        if self._next().word == _OPEN:
            self._skip_to_close()

    def _skip_to_close(self) -> None:
        """Skip to behind the bracket that closes the one read last."""
        depth = 1
        while depth and not self._is_done:
            depth += {_OPEN: 1, _CLOSE: -1}.get(self._next().word, 0)

    def _fail(self, problem: str) -> None:
        """Raise DdlError at the next token."""
        raise DdlError(problem, self._text, self.token.at)
