"""Copies dead letters for a process that takes over from another.

The other one may have been frozen in the middle of a transaction, and hold its locks, or run on another machine, where
SQLite's shared memory means nothing. So the files are copied as they are and only the copy is opened: SQLite then drops
what was not committed.
"""

import os
import shutil
from pathlib import Path

from penstock.errors import SinkError
from penstock.search._sqlite import connect_durably, translate_sqlite_errors

_ATTEMPTS = 5  # a write of the other process may cut across a copy
_CONTENT = "dead letters"


def copy_letters(source: Path, target: Path) -> None:
    """Copy the committed letters of one file to another, which is replaced; nothing happens if there are none.

    copy_letters(dead_letters_path(before), dead_letters_path(checkpoint))
    """
    if not source.exists():
        return
    for _ in range(_ATTEMPTS):
        for suffix in ("-shm", "-wal", ""):
            Path(f"{target}{suffix}").unlink(missing_ok=True)
        # Before the log of changes: pages that are moved from it to the file meanwhile are in the log as well.
        _copy_file(source, target)
        _copy_file(Path(f"{source}-wal"), Path(f"{target}-wal"))
        if _is_sound(target):
            return
    raise SinkError(
        f"the {_CONTENT} in {source} cannot be copied: they are damaged, or are being written; move them away"
    )


def _copy_file(source: Path, target: Path) -> None:
    """Copy a file for its owner only, and bring it to the disk; a missing one is left out."""
    if not source.exists():
        return
    target.touch(mode=0o600)
    with source.open("rb") as reader, target.open("wb") as writer:
        shutil.copyfileobj(reader, writer)
        writer.flush()
        os.fsync(writer.fileno())


def _is_sound(path: Path) -> bool:
    """Tell whether SQLite finds no fault with a file."""
    with translate_sqlite_errors(path, _CONTENT):
        connection = connect_durably(path)
        try:
            return connection.execute("PRAGMA quick_check").fetchall() == [("ok",)]
        finally:
            connection.close()
