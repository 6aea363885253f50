"""Locks on the checkpoints of sync jobs and of builds: one process has each, on a machine."""

from pathlib import Path

from penstock.coordinate import LockFile, LockWords

_SYNC = LockWords(
    "`penstock sync`", "checkpoint", ", or start all with --zookeeper: then one runs, and the others stand by"
)
_BUILD = LockWords("`penstock index build` or `rollback`", "checkpoint", ", or wait until it is done")


def lock_checkpoint(checkpoint: Path, *, is_shared: bool) -> LockFile:
    """Return the lock of a checkpoint. Elected drivers share it, so that none runs beside them that is not elected."""
    return LockFile(checkpoint, path=_path_of(checkpoint), words=_SYNC, is_shared=is_shared)


def lock_build(checkpoint: Path) -> LockFile:
    """Return the lock of the checkpoint of a build."""
    return LockFile(checkpoint, path=_path_of(checkpoint), words=_BUILD)


def _path_of(checkpoint: Path) -> Path:
    return checkpoint.with_name(f"{checkpoint.name}.lock")
