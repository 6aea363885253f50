"""A statement that cannot be read, or that does not fit the tables as they are known."""

from penstock.errors import SchemaError

_AROUND = 60
_MOST = 4000


class DdlError(SchemaError):
    """A statement cannot be read, or does not fit the tables as they are known. `at` is the character of `statement` at
    which reading stopped; None when the whole statement is the problem."""

    def __init__(self, what: str, statement: str, at: int | None = None) -> None:
        super().__init__(what, statement, at)
        self.what, self.statement, self.at = what, statement, at

    def __str__(self) -> str:
        shown = self.statement if len(self.statement) <= _MOST else self.statement[:_MOST] + " …"
        if self.at is None:
            return f"{self.what}; the statement: {shown}"
        near = self.statement[self.at : self.at + _AROUND] or "the end"
        return f"{self.what} at character {self.at}, near {near!r}; the statement: {shown}"
