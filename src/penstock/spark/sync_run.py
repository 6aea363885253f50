"""One run of a sync job: load each index once, then follow the changes with Spark until told to stop."""

import logging
import secrets
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.client import FlightClient
from penstock.coordinate.term_files import STATE_SUFFIX
from penstock.document import (
    DOCUMENT_DECODING,
    DeadLetterOutcome,
    DocumentBuilder,
    DocumentSync,
    LocalWriter,
)
from penstock.errors import ConfigurationError, PenstockError
from penstock.model import LogRequirement, Position
from penstock.model import Sequence as ChangeSequence
from penstock.search.dead_letters import DeadLetters
from penstock.search.index import SearchIndex
from penstock.snapshot.source_rows import SourceRows
from penstock.spark.alias_move import AliasMoves
from penstock.spark.document_writer import ExecutorWriter, WriteTask
from penstock.spark.failure import cause_of, error_class_of, is_disk_full, is_worker_lost
from penstock.spark.index_generation import (
    FinishedBuild,
    is_refused,
    refuse_build,
    remember_following,
    remember_spec,
    remove_abandoned_build,
    watch_builds,
)
from penstock.spark.index_sync import IndexSync
from penstock.spark.resumable_load import LoadStoppedError, LoadTotals, ResumableLoad, estimate_documents
from penstock.spark.sessions import stop_session
from penstock.spark.sync_job import BACKOFF, LoadedGraphs, SyncJob, SyncPlan, wait_for
from penstock.spark.sync_output import LoadReport, SyncOutput
from penstock.spark.sync_progress import SyncProgress, position_of
from penstock.spark.sync_state import SyncState
from penstock.spark.sync_terms import SyncTerm

log = logging.getLogger(__name__)

_LOOK_S = 0.5
_REPORT_S = 10.0
_MOST_UNKNOWN_FAILURES = 5
_MOST_LOST_WORKERS = 50  # more than Spark keeps idle
_LOST_WORKER_S = 0.5
_TAKE_OVER_S = 10.0  # to wait for a build that may have stopped


class SyncRun:
    """Loads the indexes of a job that are not loaded, and follows the changes until the term is stopped.

        SyncRun(job, SyncTerm(Path("/var/lib/penstock/product"), stopped), output).run()

    When the term of an elected driver ends, writing raises FencedError, and `stopped` is set.
    """

    def __init__(self, job: SyncJob, term: SyncTerm, output: SyncOutput, *, is_build: bool = False) -> None:
        """Run a job for a term. That of a build leaves the alias where it is: it is moved when the build is done."""
        self._job, self._settings, self._term, self._output = job, job.settings, term, output
        self._is_build = is_build
        self._stopped, self._say = term.stopped, output.tell
        self._state = SyncState(term.checkpoint)
        self._state.make_folder()
        self._spark: SparkSession | None = None  # while documents are written
        self._aliases: AliasMoves | None = None  # of indexes that were taken over

    def run(self) -> None:
        """Load, then follow until told to stop; an index that was built meanwhile is taken over. Raises PenstockError
        for what only a person can solve."""
        while self._run_once():
            pass

    def _run_once(self) -> bool:
        """Load, then follow. Return whether to begin again, with an index that was built meanwhile."""
        state = self._state
        client = FlightClient(self._settings.server, self._settings.destination)
        with ExitStack() as opened:
            opened.enter_context(closing(client))
            bounds: Any = self._wait_for(client.store_bounds, f"Penstock server at {self._settings.server.server}")
            if bounds is None:
                return False
            letters = opened.enter_context(DeadLetters.open(state.dead_letters))
            plans = self._take_over_builds(letters)
            self._aliases = AliasMoves(self._settings.checkpoint, state, plans, client, self._say, self._term.writer)
            self._aliases.try_all(_TAKE_OVER_S)
            syncs = [sync for plan in plans if (sync := self._open_sync(plan, letters, opened)) is not None]
            if len(syncs) < len(plans):
                return False
            for plan, (_, index) in zip(plans, syncs, strict=True):
                if not self._check_new(plan, index):
                    return False
            if state.start is None:
                state.remember_start(bounds["latest"])
            with self._open_spark() as spark:
                for sync, _ in syncs:  # from now on, large sets of documents go to the executors
                    self._wait_for(sync.reload, f"database at {self._settings.source.address}")
                for plan, (sync, index) in zip(plans, syncs, strict=True):
                    self._load_once(plan, sync, index, client, bounds["latest"])
                    if self._stopped.is_set():
                        return False
                    if not self._is_build:
                        self._add_alias(plan, index)
                return self._follow(spark, [sync for sync, _ in syncs], SyncProgress(letters.count))

    @contextmanager
    def _open_spark(self) -> Generator[SparkSession]:
        """Open a Spark session for as long as documents are written. A JVM that is gone is told in words."""
        self._spark = self._job.open_spark(self._state.spark_log)
        try:
            yield self._spark
        except (Py4JNetworkError, ConnectionError) as error:
            raise PenstockError(
                f"the Java process of Spark is gone ({error}): was it killed, or out of memory? See"
                f" {self._state.spark_log}, and start the command again: it resumes from its checkpoint"
            ) from error
        finally:
            spark, self._spark = self._spark, None
            stop_session(spark)

    def _take_over_builds(self, letters: DeadLetters) -> list[SyncPlan]:
        """Follow the index of a build that is done from now on. Return the plans, each with the generation of its index
        that is written."""
        root, state, plans = self._settings.checkpoint, self._state, self._job.plans
        build = None if self._is_build else FinishedBuild.find(root, state)
        if build is not None and build.fits(plans) and self._has_index(build):
            build.hand_over(state, letters)
            self._say(f"following generation {state.generation(build.index)} of index '{build.index}' from now on")
        elif build is not None:
            refuse_build(state, build)
            self._say(
                f"warning: a new generation of index '{build.index}' was built with another spec, or for another"
                " --index: start sync with those, so that it follows the index that readers find"
            )
        return [replace(plan, target=plan.target.of_generation(state.generation(plan.spec.index))) for plan in plans]

    def _has_index(self, build: FinishedBuild) -> bool:
        """Return whether the index of a build is where this job would write it."""
        plan = next(plan for plan in self._job.plans if plan.spec.index == build.index)
        target = plan.target.of_generation(build.generation)

        def read_load_id() -> str:
            with closing(target.open(read_only=True)) as index:
                return index.read_load_id()

        try:
            return self._wait_for(read_load_id, f"index '{target.alias_owner}'") == build.load_id
        except PenstockError:
            return False

    def _wait_for(self, action: Callable[[], Any], what: str) -> Any:
        """Return what an action returns; None when told to stop while it failed."""
        return wait_for(action, what, self._stopped, self._say)

    def _open_sync(
        self, plan: SyncPlan, letters: DeadLetters, opened: ExitStack
    ) -> tuple[DocumentSync, SearchIndex] | None:
        """Open the index of a spec, and what follows it; None when told to stop."""
        source, replica = self._settings.source, self._settings.replica
        rows = SourceRows(source, DOCUMENT_DECODING, replica=replica)
        opened.callback(rows.close)
        what = f"index '{plan.spec.index}' or the database"
        # The driver before this one may still have an embedded index open.
        index: SearchIndex | None = self._wait_for(lambda: plan.target.open(self._term.writer), what)
        if index is None:
            return None
        opened.callback(index.close)
        name, state = plan.spec.index, self._state
        loaded = LoadedGraphs(
            source, plan.spec, state.known_tables(name), lambda known: state.remember_tables(name, known)
        )

        def create_writer(builder: DocumentBuilder) -> LocalWriter | ExecutorWriter:
            local = LocalWriter(builder, rows, index)
            if self._spark is None or not plan.target.is_shared:
                return local
            task = WriteTask(builder.graph, builder.missing, source, plan.target, self._term.worker, replica)
            return ExecutorWriter(self._spark, task, local)

        def open_sync() -> DocumentSync:
            outcome = DeadLetterOutcome(plan.spec.index, letters)
            sync = DocumentSync(loaded.load, rows, index, create_writer, outcome)
            sync.prepare_index()
            return sync

        sync = self._wait_for(open_sync, what)
        return None if sync is None else (sync, index)

    def _check_new(self, plan: SyncPlan, index: SearchIndex) -> bool:
        """Raise ConfigurationError when an index that is to be loaded has documents already; one that is away is waited
        for. Return False when told to stop meanwhile."""
        name, state = plan.spec.index, self._state
        if name in state.loaded or state.loading_since(name) is not None:
            return True
        return self._wait_for(lambda: _check_empty(index, name), f"index '{name}'") is not None

    def _load_once(
        self, plan: SyncPlan, sync: DocumentSync, index: SearchIndex, client: FlightClient, latest: Position
    ) -> None:
        """Load an index unless it was loaded before, with a version from before the load: any later change wins."""
        name, state, say = plan.spec.index, self._state, self._say
        if name in state.loaded:
            load_id = self._wait_for(index.read_load_id, f"index '{name}'")
            if load_id is not None and load_id != state.load_id(name):
                root = self._settings.checkpoint
                raise ConfigurationError(
                    f"index '{name}' is not the one that {state.file} says was loaded: it was deleted, and is another"
                    f" one now. Remove the checkpoint {root} and {root}{STATE_SUFFIX} to load it again"
                )
            return
        start = state.loading_since(name) or (latest if state.has_offsets else state.start or latest)
        state.remember_loading(name, start)
        say(f"first load of index '{name}', changes will follow from {start}")

        def load_rest() -> LoadTotals:
            required = LogRequirement.of_position(start, client.file_identity(start))
            index.begin_load()
            estimated = estimate_documents(self._settings.source, sync.graph.root.table.name)

            def show(documents: int, documents_per_s: float) -> None:
                self._output.show_load(LoadReport(name, documents, documents_per_s, estimated))

            index.refresh()  # it may have been deleted, and be another one, since a load was interrupted
            load = ResumableLoad(state, name, plan.spec_hash, show, self._stopped)
            return load.run(sync, int(ChangeSequence.from_position(start)), required, is_empty=index.count() == 0)

        try:
            counts = self._wait_for(load_rest, f"index '{name}' or the database")
        except LoadStoppedError:
            return
        if counts is None:
            return
        load_id = secrets.token_hex(8)
        if self._wait_for(lambda: _finish_load(index, load_id), f"index '{name}'") is None:
            return
        state.remember_loaded(name, start, load_id)
        remember_spec(state, name, plan.spec_hash)
        say(f"loaded {counts.documents} documents" + (f", {counts.rejected} rejected" if counts.rejected else ""))

    def _add_alias(self, plan: SyncPlan, index: SearchIndex) -> None:
        """Let the alias of a spec lead to its index, which is loaded; one that leads elsewhere is left to people."""
        alias, name = plan.spec.alias, plan.target.alias_owner
        if alias is None or plan.spec.index in (self._state.read_build().get("pending") or {}):
            return
        owners = self._wait_for(lambda: index.add_alias(alias), f"index '{name}'")
        if owners and name not in owners:
            others = " and ".join(f"'{owner}'" for owner in owners)
            self._say(
                f"warning: alias '{alias}' leads to {others}, and is left there: move it when readers are to find"
                f" '{name}'"
            )

    def _follow(self, spark: SparkSession, syncs: Sequence[DocumentSync], progress: SyncProgress) -> bool:
        """Run the stream until told to stop; one that fails for a while is started again. Return whether an index was
        built meanwhile, with which the job begins again."""
        settings, stopped = self._settings, self._stopped
        sync = IndexSync(
            syncs,
            server=settings.server,
            destination=settings.destination,
            on_batch=progress.add_batch,
            stopped=stopped,
            require=lambda: None if self._term.writer is None else self._term.writer.require(),
        )
        failures, done = 0, 0
        self._say("following changes; Ctrl-C stops")
        while not stopped.is_set():
            failure = self._run_stream(spark, sync, progress)
            if failure is None:
                return not stopped.is_set()
            kind = error_class_of(failure)
            failures, done = (1 if progress.batches > done else failures + 1), progress.batches
            if _is_final(failure, failures):
                raise (kind or PenstockError)(f"the stream stopped: {cause_of(failure)}")
            delay_s = _LOST_WORKER_S if is_worker_lost(failure) else BACKOFF.delay_s(failures)
            self._say(f"the stream stopped and is started again in {delay_s:.0f} s: {cause_of(failure)}")
            stopped.wait(delay_s)
        return False

    def _run_stream(self, spark: SparkSession, sync: IndexSync, progress: SyncProgress) -> Exception | None:
        """Start the stream and run it until it fails, and return why it did; None when told to stop. Raises
        Py4JNetworkError or ConnectionError when Spark is gone."""
        try:
            folder, start = self._state.open_stream(sync.filter)
            query = sync.start(spark, folder, start)
            if not self._is_build:
                remember_following(self._state)
                remove_abandoned_build(self._settings.checkpoint)
        except ConnectionError:
            raise
        except (Py4JJavaError, PySparkException, OSError) as error:  # a worker was lost, or the disk is full
            return error
        failure = self._watch(query, progress)
        if failure is None:
            _stop_query(query)
        return failure

    def _watch(self, query: Any, progress: SyncProgress) -> Any:
        """Report the progress of a query until it ends; return why it did, or None when told to stop, or when an index
        was built that is to be followed."""
        find_build = watch_builds(self._settings.checkpoint, self._state)
        next_report = time.monotonic() + _REPORT_S
        while not self._stopped.wait(_LOOK_S):
            if time.monotonic() >= next_report:
                next_report += _REPORT_S
                if (happened := progress.take_report(str(position_of(query) or "its start"))) is not None:
                    self._output.report(happened)
            if self._aliases is not None:
                self._aliases.try_all()
            build = None if self._is_build else find_build()
            if build is not None and not is_refused(self._state, build):
                if build.fits(self._job.plans):
                    return None
                refuse_build(self._state, build)
                self._say(
                    f"warning: a new generation of index '{build.index}' was built with another spec: start sync with"
                    " that spec, so that it follows the index that readers find"
                )
            if not query.isActive:
                return query.exception() or PenstockError("the stream has ended")
        return None


def _is_final(failure: Exception, failures: int) -> bool:
    """Return whether sync ends after a failure of its stream, the so-many-th without a batch in between."""
    kind = error_class_of(failure)
    if kind is not None:
        return not kind.transient
    if is_disk_full(failure):
        return False  # until somebody makes room
    return failures >= (_MOST_LOST_WORKERS if is_worker_lost(failure) else _MOST_UNKNOWN_FAILURES)


def _stop_query(query: Any) -> None:
    """Stop a query; one that does not end in time ends with its session."""
    try:
        query.stop()
    except Exception as error:  # noqa: BLE001 - Spark has no class of its own for this
        log.warning(
            "Spark streaming query not stopped in time, its unfinished batch runs again at the next start reason=%s",
            cause_of(error),
        )


def _finish_load(index: SearchIndex, load_id: str) -> bool:
    """Make a load searchable, and let the index remember it."""
    index.end_load()
    index.remember_load(load_id)
    return True


def _check_empty(index: SearchIndex, name: str) -> bool:
    """Raise ConfigurationError when an index that is to be loaded has documents already."""
    index.refresh()  # an interrupted load has left refreshes off
    if count := index.count():
        raise ConfigurationError(
            f"index '{name}' holds {count} documents, but no checkpoint says how they came there; rows deleted since"
            " then would stay in it: delete the index first, or name its checkpoint"
        )
    return True
