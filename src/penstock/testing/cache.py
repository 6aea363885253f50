"""The folder that keeps downloads between runs.

Invariant: a folder in the cache is complete or absent. It is built under another name and renamed, and a lock per
folder lets concurrent runs wait for each other instead of downloading twice.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from penstock.errors import ServerStartError

Report = Callable[[str], None]


def cache_folder() -> Path:
    """Return the folder for downloads: PENSTOCK_CACHE, else the user's cache folder."""
    named = os.environ.get("PENSTOCK_CACHE")
    if named:
        return Path(named).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "penstock"


def has_folder(path: Path) -> bool:
    """Tell whether a folder exists; one behind a folder that we may not enter does not exist for us."""
    try:
        return path.is_dir()
    except PermissionError:
        return False


def build_once(target: Path, build: Callable[[Path], None], report: Report) -> Path:
    """Return `target`, after `build` has filled it unless it was there."""
    if has_folder(target):
        return target
    with lock_folder(target, report):
        if has_folder(target):
            return target
        partial = target.parent / f".{target.name}.partial"
        # The lock is ours, so this can only be what a killed run left.
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        try:
            build(partial)
            partial.rename(target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return target


@contextmanager
def lock_folder(target: Path, report: Report) -> Generator[None]:
    """Hold the lock of one folder of the cache, whether the folder exists or not."""
    with _open_lock_file(target) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"another run uses {target.name}, waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _open_lock_file(target: Path) -> TextIO:
    """Open the lock file of a cache folder."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # The file has no content and stays, because removing a lock file is a race.
        return (target.parent / f".{target.name}.lock").open("a")
    except OSError as error:
        raise ServerStartError(
            f"the cache folder {target.parent} cannot be used ({error.strerror}): name another in PENSTOCK_CACHE"
        ) from error
