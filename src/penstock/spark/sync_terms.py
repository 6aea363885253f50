"""Terms of a sync pipeline: each process that takes over begins a checkpoint of its own where the last one has ended.

Two Spark queries must never write to one checkpoint, and a process that was frozen may wake up in the middle of a
write. So no process writes where another does: state, offsets and dead letters are copied when a term begins.
"""

import threading
from dataclasses import dataclass
from pathlib import Path

from penstock.coordinate import ElectionNodes
from penstock.coordinate.term_files import (
    find_newest_checkpoint,
    find_newest_term,
    path_of_term,
    remove_terms_before,
)
from penstock.errors import ConfigurationError
from penstock.search.dead_letter_copy import copy_letters
from penstock.search.writer_term import WriterTerm
from penstock.spark.sync_state import SyncState


@dataclass(frozen=True, slots=True)
class SyncTerm:
    """One time in which this process runs a pipeline: where it writes, and for how long it may."""

    checkpoint: Path
    stopped: threading.Event  # set when it is to end
    writer: WriterTerm | None = None  # of an elected process
    worker: WriterTerm | None = None  # the same, for the processes of Spark's executors


def begin_term(root: Path, pipeline: str, number: int) -> Path:
    """Return the checkpoint of a new term of a pipeline, which continues the newest one there is.

    checkpoint = begin_term(Path("/var/lib/penstock/orders"), "orders", fence.epoch)
    """
    newest = find_newest_term(root)
    if newest >= number:
        raise ConfigurationError(
            f"{root} was written in term {newest} of the pipeline '{pipeline}', and ZooKeeper has just begun term"
            f" {number}: another ZooKeeper elects drivers for this checkpoint, or this one has lost what it knew. If"
            f" so, write {newest} into its node {ElectionNodes.of_pipeline(pipeline).epoch}"
        )
    before, state = SyncState(find_newest_checkpoint(root)), SyncState(path_of_term(root, number))
    state.make_folder()
    try:
        copy_letters(before.dead_letters, state.dead_letters)
        state.take_tables(before)
        state.take_over(before.hand_over(pipeline))  # last: from now on the term counts
    except OSError as error:
        raise ConfigurationError(f"cannot continue the checkpoint {root}: {error}") from None
    remove_terms_before(root, newest)
    return path_of_term(root, number)
