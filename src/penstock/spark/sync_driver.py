"""The process that drives a sync job: the only one of its checkpoint, or with ZooKeeper the elected one of several."""

import os
import socket
import threading
from dataclasses import replace
from pathlib import Path

from penstock.coordinate import Fence, LeaseFile, LeasePublisher
from penstock.coordinate.term_files import find_ended_term, find_newest_checkpoint, lease_of_term
from penstock.coordinate.tree import import_kazoo
from penstock.errors import ConfigurationError
from penstock.search.writer_term import WriterTerm
from penstock.spark.checkpoint_lock import lock_checkpoint
from penstock.spark.sync_election import SESSION_S, DriverCandidate, SyncElection
from penstock.spark.sync_job import SyncJob
from penstock.spark.sync_output import SyncOutput
from penstock.spark.sync_run import SyncRun
from penstock.spark.sync_settings import SyncSettings
from penstock.spark.sync_terms import SyncTerm, begin_term


class SoleDriver:
    """Drives a sync job without ZooKeeper: a second process with the same checkpoint, on the same machine, is refused.

    SoleDriver(settings, output).run()
    """

    def __init__(self, settings: SyncSettings, output: SyncOutput) -> None:
        self._settings, self._output = settings, output
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Let `run` return soon. It may be called by a signal handler."""
        self._stopped.set()

    def run(self) -> None:
        """Do the job until told to stop. Raises PenstockError for what only a person can solve."""
        checkpoint = self._settings.checkpoint
        with lock_checkpoint(checkpoint, is_shared=False):
            job = SyncJob.prepare(self._settings, self._output.tell, self._stopped)
            if not self._stopped.is_set():
                SyncRun(job, SyncTerm(find_newest_checkpoint(checkpoint), self._stopped), self._output).run()


class ElectedDriver:
    """Drives a sync job in each term in which this process is elected, and stands by for the others.

        driver = ElectedDriver(settings, make_candidate("zk1:2181", None, settings.checkpoint), output)
        driver.run()

    A process that loses its term stands by again: when ZooKeeper was away for a while, all of them have lost it.
    """

    def __init__(self, settings: SyncSettings, candidate: DriverCandidate, output: SyncOutput) -> None:
        import_kazoo()
        self._settings, self._candidate, self._output = settings, candidate, output
        self._preparing = threading.Event()  # set when told to stop
        self._election = SyncElection(candidate, output, lambda: find_ended_term(settings.checkpoint))

    def stop(self) -> None:
        """Let `run` return soon. It may be called by a signal handler."""
        self._preparing.set()
        self._election.stop()

    def run(self) -> None:
        """Stand by or do the job, until told to stop. Raises PenstockError for what only a person can solve."""
        with lock_checkpoint(self._settings.checkpoint, is_shared=True):
            job = SyncJob.prepare(self._settings, self._output.tell, self._preparing)
            if not self._preparing.is_set():
                self._election.run(lambda fence, stopped: self._run_term(job, fence, stopped))

    def _run_term(self, job: SyncJob, fence: Fence, stopped: threading.Event) -> None:
        root, pipeline, number = self._settings.checkpoint, self._candidate.pipeline, fence.epoch
        lease = lease_of_term(root, number)
        with LeasePublisher(lease, fence):
            writer = WriterTerm(pipeline, number, fence.require)
            worker = replace(writer, require=LeaseFile(lease).require)
            SyncRun(job, SyncTerm(begin_term(root, pipeline, number), stopped, writer, worker), self._output).run()


def make_candidate(
    zookeeper: str, pipeline: str | None, checkpoint: Path, session_s: float = SESSION_S
) -> DriverCandidate:
    """Return this process as a candidate for driving a pipeline, whose name is by default that of its checkpoint.
    Raises ConfigurationError for a name that ZooKeeper does not take."""
    name = checkpoint.name if pipeline is None else pipeline
    if not name.isprintable() or "/" in name or name in {"", ".", ".."}:
        raise ConfigurationError(f"'{name}' cannot be the name of a pipeline in ZooKeeper: choose another --name")
    return DriverCandidate(zookeeper, name, f"{socket.gethostname()}:{os.getpid()}", session_s)
