"""Files by term: each process that takes over from another works in files of its own.

CHECKPOINT           of a process that was not elected; files beside it begin with its name (CHECKPOINT.begin.json)
CHECKPOINT/term-7    of the winner of election 7, and beside it term-7.begin.json and others

Invariant: only the winner of a term writes files of that term. A process that was frozen in the middle of a write, and
wakes up when another has taken over, so changes nothing that anybody reads: no check of its own could promise that,
since it can be frozen between the check and the write.
"""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from penstock.coordinate.lease_file import LeaseFile
from penstock.errors import ConfigurationError

# A term counts from when its state is there: what came before is copied by then.
STATE_SUFFIX = ".begin.json"
_LEASE_SUFFIX = ".lease"
_STATE_NAME = re.compile(rf"term-([1-9]\d*){re.escape(STATE_SUFFIX)}")
_LEASE_NAME = re.compile(rf"term-([1-9]\d*){re.escape(_LEASE_SUFFIX)}")
_ANY_NAME = re.compile(r"term-([1-9]\d*)(\..+)?")


def path_of_term(root: Path, number: int) -> Path:
    """Return the checkpoint of one term of a pipeline, whose own checkpoint is `root`."""
    return root / f"term-{number}"


def find_newest_term(root: Path) -> int:
    """Return the number of the newest term that has begun; 0 when no process was elected yet."""
    return max((number for number, _ in _match_names(root, _STATE_NAME)), default=0)


def find_newest_checkpoint(root: Path) -> Path:
    """Return the checkpoint of the newest term; that of the pipeline itself when no process was elected yet."""
    number = find_newest_term(root)
    return path_of_term(root, number) if number else root


def read_generations(root: Path) -> dict[str, str]:
    """Return the generations of indexes that a pipeline writes now, by the names of their specs; an index that is not
    there has its own name."""
    newest = find_newest_checkpoint(root)
    file = newest.with_name(f"{newest.name}{STATE_SUFFIX}")
    return json.loads(file.read_text(encoding="utf-8")).get("generations", {}) if file.exists() else {}


def lease_of_term(root: Path, number: int) -> Path:
    """Return the file in which the winner of a term publishes its lease."""
    return root / f"term-{number}{_LEASE_SUFFIX}"


def find_ended_term(root: Path) -> int | None:
    """Return the number of the newest term that has a lease, if its winner ran on this machine and has ended; None when
    it lives, or nothing is known of it."""
    try:
        number, path = max(_match_names(root, _LEASE_NAME), default=(0, root))
        return number if number and LeaseFile(path).has_died() else None
    except (ConfigurationError, OSError):
        return None


def remove_terms_before(root: Path, number: int) -> None:
    """Remove the files of all terms before a number. What cannot be removed stays: nobody reads it."""
    for term, path in _match_names(root, _ANY_NAME):
        if term < number:
            with suppress(OSError):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _match_names(root: Path, pattern: re.Pattern[str]) -> Iterator[tuple[int, Path]]:
    """Yield the number of the term and the path of everything in a checkpoint whose name matches. Raises
    ConfigurationError for a checkpoint that is there and cannot be read."""
    try:
        paths = list(root.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigurationError(f"the checkpoint {root} cannot be read: {error.strerror}") from None
    for path in paths:
        if match := pattern.fullmatch(path.name):
            yield int(match[1]), path
