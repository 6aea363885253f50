"""`penstock sync` as one object: check the spec, load once, then follow until told to stop."""

import json
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from penstock.client import FlightClient, ServerAddress
from penstock.config import SourceSettings
from penstock.disk import replace_file
from penstock.document import DocumentBuilder, DocumentPlan, load_all_documents, load_spec
from penstock.errors import ConfigurationError, PenstockError
from penstock.model import Position, Sequence
from penstock.schema import check_cascades, read_live_schema
from penstock.search.index import SearchIndex
from penstock.source import RowQuery, connect
from penstock.source.connection import translate_errors
from penstock.spark.failure import cause_of
from penstock.spark.index_sync import IndexSync
from penstock.spark.sessions import check_java, local_session, stop_session

_LOOK_S = 0.5


def open_index(target: str, name: str) -> Any:
    """Return a context manager that gives an index, at a URL or embedded in a folder, and closes it at the end."""
    if "://" in target:
        from penstock.search.http import HttpIndex  # noqa: PLC0415 - needs the extra `search`

        return closing(HttpIndex.open(target, name))
    from penstock.search.embedded import EmbeddedIndex  # noqa: PLC0415 - needs the extra `embedded`

    return closing(EmbeddedIndex.open(target))


class SyncJob:
    """The work of `penstock sync`: loads the documents of a spec into a search index once, then follows the changes
    with Spark."""

    def __init__(self, plan: DocumentPlan, source: SourceSettings, server: ServerAddress, destination: str) -> None:
        self.plan = plan
        self._source = source
        self._server = server
        self._destination = destination

    @classmethod
    def prepare(cls, spec_file: Path, source: SourceSettings, server: ServerAddress, destination: str) -> "SyncJob":
        """Return a job for a document spec. Whatever is wrong with the machine, the spec or the source is raised here,
        before any work."""
        check_java()
        spec = load_spec(spec_file)
        with closing(connect(source)) as connection, translate_errors(source), connection.cursor() as cursor:
            plan = DocumentPlan.from_spec(spec, {table: read_live_schema(cursor, table) for table in spec.tables})
            check_cascades(cursor, spec.tables)
        return cls(plan, source, server, destination)

    def run(self, index: SearchIndex, checkpoint: Path, stopped: threading.Event, say: Callable[[str], None]) -> None:
        """Load the index unless its checkpoint has been followed before, then follow the changes until `stopped` is
        set; `say` receives the progress. Raises PenstockError when the stream fails."""
        first_load = FirstLoad(checkpoint)
        with closing(FlightClient(self._server, self._destination)) as client:
            bounds = client.store_bounds()
        index.prepare(self.plan.fields)
        with closing(RowQuery(self._source)) as reader:
            builder = DocumentBuilder(self.plan, reader)
            if first_load.is_over:
                self._check_not_empty(index, builder, checkpoint)
                start = first_load.position
            else:
                start = self._load(index, builder, first_load, bounds, say)
            spark = local_session(f"penstock sync {self.plan.spec.index}", log_file=first_load.spark_log)
            try:
                sync = IndexSync(self.plan, builder, index, server=self._server, destination=self._destination)
                self._follow(sync.start(spark, checkpoint, start), stopped, say)
            finally:
                stop_session(spark)

    def _load(
        self,
        index: SearchIndex,
        builder: DocumentBuilder,
        first_load: "FirstLoad",
        bounds: dict[str, Any],
        say: Callable[[str], None],
    ) -> Position:
        """Load all documents, for the first time or after a run that did not reach its first batch, and return the
        position from which changes are followed: the same one as in that run."""
        name = self.plan.spec.index
        if first_load.position is None and index.count():
            raise ConfigurationError(
                f"index '{name}' holds {index.count()} documents, but no checkpoint says how they came there;"
                " rows deleted since then would stay in it: delete the index first, or name its checkpoint"
            )
        start = first_load.position or bounds["latest"]
        first_load.remember(start)
        say(f"first load of index '{name}', changes will follow from {start}")
        version = int(Sequence.from_position(start))
        count = load_all_documents(builder, index, version, lambda done: say(f"  {done} documents"))
        index.refresh()
        say(f"loaded {count} documents")
        return start

    def _check_not_empty(self, index: SearchIndex, builder: DocumentBuilder, checkpoint: Path) -> None:
        if not index.count() and next(builder.build_pages(1), None):
            raise ConfigurationError(
                f"index '{self.plan.spec.index}' is empty, but {checkpoint} says that it was loaded:"
                f" remove {checkpoint} and {FirstLoad(checkpoint).file} to load it again"
            )

    def _follow(self, query: Any, stopped: threading.Event, say: Callable[[str], None]) -> None:
        say("following changes; Ctrl-C stops")
        while not stopped.wait(_LOOK_S):
            failure = query.exception()
            if failure is not None:
                raise PenstockError(f"the stream stopped: {cause_of(failure)}")
        query.stop()


class FirstLoad:
    """The position at which a new checkpoint begins, remembered beside it before the first load.

    Spark's own offsets exist only from the first batch on; a load that was interrupted before must begin at the same
    position again, or what was deleted in between would never be deleted in the index.
    """

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint
        self.file = checkpoint.with_name(f"{checkpoint.name}.begin.json")
        self.spark_log = checkpoint.with_name(f"{checkpoint.name}.spark.log")
        try:
            checkpoint.mkdir(parents=True, exist_ok=True)
            self.spark_log.touch()
        except OSError as error:
            raise ConfigurationError(f"cannot keep a checkpoint in {checkpoint}: {error.strerror}") from None

    @property
    def is_over(self) -> bool:
        """Return whether the stream has offsets of its own, from which it resumes."""
        return any((self._checkpoint / "offsets").glob("[0-9]*"))

    @property
    def position(self) -> Position | None:
        """The position from which changes are followed, as remembered before the first load; None before that."""
        if not self.file.exists():
            return None
        return Position.from_json(json.loads(self.file.read_text(encoding="utf-8")))

    def remember(self, position: Position) -> None:
        """Persist where changes will be followed from; a crash leaves the whole file, or none."""
        replace_file(self.file, json.dumps(position.to_json()).encode())
