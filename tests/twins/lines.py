"""Twin of the kernels that write lines out of columns of text: strings that are joined."""

from collections.abc import Sequence


def join_texts(
    lines: Sequence[str], values: Sequence[str | None], rows: Sequence[int], marks: tuple[str, str, str]
) -> list[str]:
    """Return each line with its row of a column after it: between the first two marks, or the third for a null."""
    before, after, null = marks
    texts = [null if value is None else f"{before}{value}{after}" for value in values]
    return [line + texts[row] for line, row in zip(lines, rows, strict=True)]
