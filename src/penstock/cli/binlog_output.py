"""The file or standard output that `penstock binlog` writes to, and its warnings on stderr."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def open_output(target: Path | None) -> Generator[BinaryIO, None, None]:
    """Open the output file, or the standard output if there is none."""
    if target is not None:
        with target.open("wb") as file:
            yield file
        return
    try:
        yield sys.stdout.buffer
    finally:
        sys.stdout.buffer.flush()


def abandon_stdout() -> None:
    """Replace the standard output, so that Python does not try to write the rest at its exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_warning(text: str) -> None:
    """Print a warning to stderr."""
    print(f"penstock: warning: {text}", file=sys.stderr)
