"""What a kernel or decoder found wrong with one value; its caller, which knows table and position, raises the real
error."""


class ValueProblemError(Exception):
    """A value that no server writes; the caller, which knows table and position, raises the real error."""

    def __init__(self, row: int, what: str, byte: int | None = None) -> None:
        super().__init__(row, what, byte)
        self.row, self.what, self.byte = row, what, byte
        self.line = 0  # of the column; set by whoever counts them


class TooLongError(ValueProblemError):
    """The values of one column are too long for one Arrow array; with fewer rows they may fit."""

    def __init__(self, row: int = 0) -> None:
        super().__init__(row, "has more than 2 GiB, which is more than an Arrow array can hold")
