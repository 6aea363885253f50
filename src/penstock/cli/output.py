"""How commands print their results: `--output` chooses it, and means the same in every command.

`text` is for people and may change; `json` is for programs. With JSON, notes, questions and warnings go to stderr, so
that the standard output can be parsed as a whole.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

OutputFormat = Annotated[
    Literal["text", "json"], typer.Option("--output", help="How to print results: text for people, json for programs.")
]
_UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


class Output:
    """Prints what a command found, as text or as JSON.

    Every result is given in both forms, so that no command has one without the other:

        output = Output("json")
        output.print_result({"ready": True}, lambda: ["ready"])
    """

    def __init__(self, output_format: Literal["text", "json"]) -> None:
        self.is_json = output_format == "json"

    def print_result(self, data: Any, lines: Callable[[], Iterable[str]], *, is_line: bool = False) -> None:
        """Print one result: `data` as JSON, on a single line with `is_line`, or else the lines of text."""
        if self.is_json:
            indent = None if is_line else 2
            typer.echo(json.dumps(data, indent=indent, ensure_ascii=False, default=_plain_value))
        else:
            for line in lines():
                typer.echo(line)

    def print_event(self, event: str, text: str, **details: object) -> None:
        """Print what just happened in a command that keeps running; with JSON, as an object on one line."""
        self.print_result({"event": event, **details}, lambda: [text], is_line=True)

    def print_note(self, text: str) -> None:
        """Print what is not part of the result: beside the text, or on stderr when the result is JSON."""
        typer.echo(text, err=self.is_json)

    def confirm(self, question: str) -> bool:
        """Ask a yes-or-no question at the terminal, on stderr when the result is JSON; return the answer."""
        return typer.confirm(question, err=self.is_json)


def table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows as lines of text whose columns are aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def format_size(size: float, *, unit: str = "B") -> str:
    """Return a number of bytes as people read it, such as `1.5 MB`."""
    for name, factor in _UNITS:
        if size >= factor:
            return f"{size / factor:.1f} {name}"
    return f"{size:.0f} {unit}"


def _plain_value(value: Any) -> Any:
    """Return a value that JSON has, for one that it does not have."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be printed as JSON")
