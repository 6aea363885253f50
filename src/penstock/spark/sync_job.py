"""`penstock sync` as one object: check the spec, load once, then follow until told to stop."""

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from penstock.client import FlightClient
from penstock.config import SourceSettings
from penstock.document import DocumentBuilder, DocumentPlan, load_all, load_spec
from penstock.errors import PenstockError
from penstock.model import Sequence
from penstock.schema import live_schema
from penstock.search.index import SearchIndex
from penstock.source import RowQuery, connect
from penstock.source.connection import translated
from penstock.spark.index_sync import IndexSync
from penstock.spark.session import local_session, stop_session

_LOOK_S = 0.5


def open_index(target: str, name: str) -> Any:
    """An index by URL, or embedded in a folder; close it when done."""
    if "://" in target:
        from penstock.search.http import HttpIndex  # noqa: PLC0415 - needs the extra `search`

        return closing(HttpIndex.open(target, name))
    from penstock.search.embedded import EmbeddedIndex  # noqa: PLC0415 - needs the extra `embedded`

    return closing(EmbeddedIndex.open(target))


class SyncJob:
    def __init__(self, plan: DocumentPlan, source: SourceSettings, server: str, destination: str) -> None:
        self.plan = plan
        self._source = source
        self._server = server
        self._destination = destination

    @classmethod
    def prepare(cls, spec_file: Path, source: SourceSettings, server: str, destination: str) -> "SyncJob":
        """Everything that can be wrong with the spec or the source is said here, before Spark starts."""
        spec = load_spec(spec_file)
        with closing(connect(source)) as connection, translated(source), connection.cursor() as cursor:
            plan = DocumentPlan.of(spec, {table: live_schema(cursor, table) for table in spec.tables})
        return cls(plan, source, server, destination)

    def run(self, index: SearchIndex, checkpoint: Path, stopped: threading.Event, say: Callable[[str], None]) -> None:
        with closing(FlightClient(self._server, self._destination)) as client:
            bounds = client.bounds()
        index.prepare(self.plan.fields)
        with closing(RowQuery(self._source)) as reader:
            builder = DocumentBuilder(self.plan, reader)
            start = None
            if not any((checkpoint / "offsets").glob("[0-9]*")):
                start = bounds["latest"]
                say(f"first load of index '{self.plan.spec.index}', changes will follow from {start}")
                version = int(Sequence.at(start, bounds["epoch"]))
                count = load_all(builder, index, version, lambda done: say(f"  {done} documents"))
                index.refresh()
                say(f"loaded {count} documents")
            spark = local_session(f"penstock sync {self.plan.spec.index}", log_file=_log_beside(checkpoint))
            try:
                self._follow(
                    IndexSync(self.plan, builder, index, server=self._server, destination=self._destination).start(
                        spark, checkpoint, start
                    ),
                    stopped,
                    say,
                )
            finally:
                stop_session(spark)

    def _follow(self, query: Any, stopped: threading.Event, say: Callable[[str], None]) -> None:
        say("following changes; Ctrl-C stops")
        while not stopped.wait(_LOOK_S):
            failure = query.exception()
            if failure is not None:
                raise PenstockError(f"the stream stopped: {cause_of(failure)}")
        query.stop()


def _log_beside(checkpoint: Path) -> Path:
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    return checkpoint.with_name(f"{checkpoint.name}.spark.log")


def cause_of(failure: Exception) -> str:
    """The line of a Spark error that says what happened, without the stack traces of two languages."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("penstock.errors.")]
    return ours[-1].partition(": ")[2] if ours else lines[0]
