"""Aliases of indexes in folders: a symbolic link beside the folder, which is replaced from one moment to the next."""

import secrets
from pathlib import Path

from penstock.errors import ConfigurationError


def read_folder_alias(folder: Path, alias: str) -> str | None:
    """Return the name of the folder that an alias beside a folder leads to; None if there is no such alias."""
    link = folder.absolute().parent / alias
    if link.is_symlink():
        return link.readlink().name
    if link.exists():
        raise ConfigurationError(
            f"{link} exists and is not an alias that Penstock made: choose another `alias` in the spec, or move it away"
        )
    return None


def move_folder_alias(folder: Path, alias: str) -> None:
    """Let an alias lead to a folder: whoever opens it finds the index before or this one, and never none."""
    link = folder.absolute().parent / alias
    new = link.with_name(f".{alias}.{secrets.token_hex(4)}")
    new.symlink_to(folder.absolute().name, target_is_directory=True)
    try:
        new.replace(link)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise ConfigurationError(f"the alias {link} cannot be moved: {error.strerror}") from None
