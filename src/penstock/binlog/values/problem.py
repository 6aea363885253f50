"""What a kernel or decoder found wrong with one value; whoever knows the names and places raises the real error."""


class ValueProblemError(Exception):
    def __init__(self, row: int, what: str, byte: int | None = None) -> None:
        super().__init__(row, what, byte)
        self.row, self.what, self.byte = row, what, byte
