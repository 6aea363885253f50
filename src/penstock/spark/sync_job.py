"""The work of `penstock sync`: its document specs, checked against the source before anything is written.

Whatever it talks to may be away, at its start or later: it waits, tries again and says so. It ends for what only a
person can solve.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from penstock.backoff import Backoff
from penstock.config import SourceSettings
from penstock.coordinate.term_files import find_newest_checkpoint
from penstock.document import DocumentSpec, DocumentTables, LoadedGraph, find_missing_indexes, load_checked, load_graph
from penstock.document.spec_hash import hash_spec
from penstock.document.spec_location import load_located_spec
from penstock.errors import ConfigurationError, PenstockError, SchemaError
from penstock.source import connect
from penstock.source.connection import translate_errors
from penstock.spark.index_target import IndexTarget
from penstock.spark.sessions import check_java, local_session
from penstock.spark.sync_settings import SyncSettings
from penstock.spark.sync_state import SyncState

T = TypeVar("T")

BACKOFF = Backoff(1.0, 30.0, spread=0.2)
# The driver holds one batch at a time, whatever the size of a transaction.
_SPARK_SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.maxResultSize": "512m",
    # A batch that is in the middle of its work when sync is stopped runs again at the next start.
    "spark.sql.streaming.stopTimeout": "10s",
}


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """One document spec of a job, checked against the source, and the index that it fills."""

    file: Path
    spec: DocumentSpec
    target: IndexTarget
    spec_hash: str = ""  # of the spec that is used, whatever becomes of its file


class SyncJob:
    """The work of `penstock sync`: documents of specs, checked against the source, and the indexes that they fill.

    job = SyncJob.prepare(settings, output.tell, stopped)
    SyncRun(job, SyncTerm(settings.checkpoint, stopped), output).run()
    """

    def __init__(self, settings: SyncSettings, plans: Sequence[SyncPlan]) -> None:
        self.settings, self.plans = settings, plans

    @classmethod
    def prepare(cls, settings: SyncSettings, say: Callable[[str], None], stopped: threading.Event) -> "SyncJob":
        """Return a job for document specs. Whatever is wrong with the machine, a spec or the tables is raised here,
        before any work; a database that is away is waited for."""
        check_java()
        specs = [load_located_spec(file) for file in settings.spec_files]
        names = [spec.index for spec in specs]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ConfigurationError(f"two specs fill the index '{twice}'")
        targets = [settings.target.of_index(name, is_alone=len(specs) == 1) for name in names]
        hashes = [hash_spec(file, spec) for file, spec in zip(settings.spec_files, specs, strict=True)]
        parts = zip(settings.spec_files, specs, targets, hashes, strict=True)
        job = cls(settings, [SyncPlan(*part) for part in parts])
        wait_for(lambda: job._check_tables(say), f"database at {settings.source.address}", stopped, say)
        return job

    def _check_tables(self, say: Callable[[str], None]) -> None:
        """Raise what does not fit between specs and tables, and tell what would be slow."""
        source = self.settings.source
        with closing(connect(source)) as connection, translate_errors(source), connection.cursor() as cursor:
            for plan in self.plans:
                loaded = self._load(cursor, plan)
                for table in sorted(loaded.missing):
                    say(
                        f"warning: index '{plan.spec.index}': there is no table {table} any more: documents have no"
                        " rows of it until it is there again"
                    )
                for statement in find_missing_indexes(cursor, loaded.graph, loaded.missing):
                    say(f"warning: index '{plan.spec.index}': whole tables are read to find documents; run {statement}")

    def _load(self, cursor: Any, plan: SyncPlan) -> LoadedGraph:
        """Return the graph of a spec that was checked. A table that is not there is a mistake of the spec, unless the
        index was filled with it before: then it was dropped meanwhile, which is followed like any other change."""
        try:
            return load_checked(cursor, plan.file)
        except SchemaError:
            known = SyncState(find_newest_checkpoint(self.settings.checkpoint)).known_tables(plan.spec.index)
            if known is None:
                raise
            with suppress(SchemaError):
                loaded = load_graph(cursor, plan.spec, known)
                if loaded.missing:
                    return loaded
            raise

    def open_spark(self, log_file: Path) -> SparkSession:
        """Return a Spark session for the stream of the job; its JVM writes its log to a file."""
        names = ", ".join(plan.spec.index for plan in self.plans)
        return local_session(f"penstock sync {names}", _SPARK_SETTINGS, log_file=log_file)


class LoadedGraphs:
    """Loads the graph of one spec as often as it is needed: after DDL, as the tables are then.

    loaded = LoadedGraphs(source, spec).load()
    """

    def __init__(
        self,
        source: SourceSettings,
        spec: DocumentSpec,
        known: DocumentTables | None = None,
        remember: Callable[[DocumentTables], None] = lambda _: None,
    ) -> None:
        """Load with tables that are `known` from before, which may be missing; `remember` gets what is known when that
        has changed."""
        self._source, self._spec = source, spec
        self._known, self._remember = known, remember

    def load(self) -> LoadedGraph:
        """Return the graph of the tables as they are now; one that was there before may be missing."""
        with (
            closing(connect(self._source)) as connection,
            translate_errors(self._source),
            connection.cursor() as cursor,
        ):
            loaded = load_graph(cursor, self._spec, self._known)
        if loaded.known != self._known:
            self._remember(loaded.known)
            self._known = loaded.known
        return loaded


def wait_for(action: Callable[[], T], what: str, stopped: threading.Event, say: Callable[[str], None]) -> T | None:
    """Return what an action returns; while it fails for a while, tell so and try again. None when told to stop."""
    failures = 0
    while not stopped.is_set():
        try:
            return action()
        except PenstockError as error:
            if not error.transient:
                raise
            failures += 1
            delay_s = BACKOFF.delay_s(failures)
            say(f"waiting for the {what}, next try in {delay_s:.0f} s: {error}")
            stopped.wait(delay_s)
    return None
