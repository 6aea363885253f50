"""Files that outlive a crash: replaced as a whole, and with names that are on the disk too. Open to all rooms."""

import os
from pathlib import Path


def replace_file(path: Path, raw: bytes) -> None:
    """A crash leaves the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    with new.open("wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """So that names are on the disk too."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
