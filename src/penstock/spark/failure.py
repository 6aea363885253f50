"""Reading Spark's errors."""

import re

from penstock import errors

# What the JVM, Python and SQLite say of it.
_DISK_FULL = re.compile(r"No space left on device|database or disk is full|Disk quota exceeded")
# Of Python processes that were killed: each idle one is an error of its own when Spark wants to use it.
_WORKER_LOST = re.compile(
    r"Python worker exited unexpectedly|Python worker failed to connect|IOException: (?:Broken pipe|Stream closed)"
    r"|Connection reset|EOFException"
)
_OURS = re.compile(r"penstock\.errors\.(\w+): ")


def cause_of(failure: Exception) -> str:
    """Return the line of a Spark error that says what happened, without the stack traces of two languages."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith(
        "An error occurred while calling "
    ):  # py4j: the error is in the next line
        lines = [lines[1].removeprefix(": "), *lines[2:]]
    ours = [line for line in lines if line.startswith("penstock.errors.")]
    return ours[-1].partition(": ")[2] if ours else lines[0] if lines else type(failure).__name__


def error_class_of(failure: Exception) -> type[errors.PenstockError] | None:
    """Return the class of the Penstock error that made a query fail; None when it was not one of ours."""
    if isinstance(failure, errors.PenstockError):
        return type(failure)
    names = _OURS.findall(str(failure))
    kind = getattr(errors, names[-1], None) if names else None
    return kind if isinstance(kind, type) and issubclass(kind, errors.PenstockError) else None


def is_disk_full(failure: Exception) -> bool:
    """Return whether a query failed because a disk is full, which ends when somebody makes room."""
    return _DISK_FULL.search(str(failure)) is not None


def is_worker_lost(failure: Exception) -> bool:
    """Return whether a query failed because a Python process of Spark's is gone."""
    return _WORKER_LOST.search(str(failure)) is not None
