"""A mark beside a schema history: tables that it does not know were read at a position of the log that is still to
come.

What was read is in memory only. If the mark is found after a crash, the tables are read again.
"""

from pathlib import Path

from penstock.disk import sync_folder
from penstock.errors import SchemaError

_FILE = "incomplete"


def is_incomplete(folder: Path) -> bool:
    """Return whether the schema history in a folder is marked as incomplete."""
    return (folder / _FILE).exists()


def mark_incomplete(folder: Path, *, is_so: bool) -> None:
    """Mark the schema history in a folder as incomplete, or remove that mark; it outlives the process."""
    if is_so == is_incomplete(folder):
        return
    try:
        if is_so:
            (folder / _FILE).touch(mode=0o600)
        else:
            (folder / _FILE).unlink()
        sync_folder(folder)
    except OSError as error:
        raise SchemaError(f"the schema history in {folder} cannot be written: {error.strerror}") from None
