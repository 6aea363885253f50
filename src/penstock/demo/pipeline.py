"""The way of a change, all of it on this machine: MariaDB → capture → Flight → Spark → embedded index.

Everything that is started is stopped again, in the opposite order, whatever happens.
"""

import tempfile
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from penstock.client import FlightClient
from penstock.config import InstanceSettings, ServerSettings, SourceSettings
from penstock.demo.change import ShopChange
from penstock.demo.numbers import PipelineNumbers
from penstock.demo.proof import IndexProof
from penstock.demo.shared_changes import ChangeProduct
from penstock.demo.shop import SEARCHABLE, SPEC_FILE, ShopSize, create_shop
from penstock.demo.steps import StepDisplay
from penstock.document import DOCUMENT_DECODING, DeadLetterOutcome, DocumentSync, LocalWriter, load_spec
from penstock.errors import PenstockError
from penstock.model import Sequence
from penstock.search.dead_letters import DeadLetters
from penstock.search.embedded import EmbeddedIndex
from penstock.server import Server
from penstock.snapshot.source_rows import SourceRows
from penstock.source import connect, current_position
from penstock.source.connection import translate_errors
from penstock.spark.applied_changes import StreamProgress
from penstock.spark.failure import cause_of
from penstock.spark.index_sync import IndexSync
from penstock.spark.sessions import check_java, local_session, stop_session
from penstock.spark.sync_job import LoadedGraphs
from penstock.spark.sync_state import read_applied
from penstock.testing import MariaDB, MariaDBInstallation

_FIRST_CHANGE_S = 60.0
_CHANGE_S = 30.0
_POLL_S = 0.002


@dataclass(frozen=True, slots=True)
class TimedChange:
    """A change of the database, how many documents it touched, and how long after its commit all of them showed it;
    None if they did not in time."""

    change: str
    text: str
    documents: int
    latency_ms: float | None
    order: int | None = None  # the order that was changed or made; None for a change of many


@dataclass(frozen=True, slots=True)
class DemoPipeline:
    """The running parts that the demo's page or check needs."""

    source: SourceSettings
    index: EmbeddedIndex
    query: Any  # Spark's StreamingQuery
    numbers: PipelineNumbers
    proof: IndexProof

    def make_change(self, change: ShopChange, deadline_s: float = _CHANGE_S) -> TimedChange:
        """Commit a change, and time it until every document that it touches shows it. Raises LookupError for a row that
        is not there, and an error of the database or of the stream."""
        with (
            translate_errors(self.source),
            closing(connect(self.source)) as connection,
            connection.cursor() as cursor,
        ):
            connection.begin()
            applied = change.apply(cursor)
            connection.commit()
        pending = deque(applied.orders)

        def is_searchable() -> bool:
            while pending and applied.shows(self.index.get(str(pending[0]))):
                pending.popleft()
            return not pending

        latency_ms = self._wait_until(is_searchable, deadline_s)
        return TimedChange(change.title, applied.text, len(applied.orders), latency_ms, applied.order)

    def _wait_until(self, is_so: Callable[[], bool], deadline_s: float) -> float | None:
        """Wait until a condition holds, and return the milliseconds that it took; None if the deadline passed. Raises
        an error of the stream."""
        began = time.perf_counter()
        while not is_so():
            if time.perf_counter() - began > deadline_s:
                return None
            failure = self.query.exception()
            if failure is not None:
                raise PenstockError(f"the stream stopped: {cause_of(failure)}")
            time.sleep(_POLL_S)
        return (time.perf_counter() - began) * 1000


@contextmanager
def run_pipeline(steps: StepDisplay, size: ShopSize) -> Generator[DemoPipeline, None, None]:
    """Start MariaDB, capture, Flight, Spark and the index, and stop all of them at the end."""
    check_java()
    with ExitStack() as started:
        folder = Path(started.enter_context(tempfile.TemporaryDirectory(prefix="penstock-demo-")))
        with steps.step("MariaDB, a private one") as detail:
            installation = MariaDBInstallation.fetch(detail)
            database = started.enter_context(MariaDB(installation, folder / "mariadb"))
        source = SourceSettings(
            host=database.host,
            port=database.port,
            user=database.user,
            password=SecretStr(database.password),
            tls="disabled",
        )
        with steps.counted_step("a shop, orders", size.orders) as progress, closing(connect(source)) as connection:
            create_shop(connection, size, progress)
            start = current_position(connection, source)
        with steps.step("capture: the server follows the log from here on"):
            instance = InstanceSettings(destination="shop", source=source, start=str(start))
            server = Server(ServerSettings.with_flight_only(instance))
            started.callback(server.stop)
            server.start()
        rows = SourceRows(source, DOCUMENT_DECODING)
        started.callback(rows.close)
        index = started.enter_context(EmbeddedIndex.open(folder / "index"))
        letters = started.enter_context(DeadLetters.open(folder / "dead-letters.sqlite"))
        spec = load_spec(SPEC_FILE)
        documents = DocumentSync(
            LoadedGraphs(source, spec).load,
            rows,
            index,
            lambda builder: LocalWriter(builder, rows, index),
            DeadLetterOutcome(spec.index, letters),
        )
        documents.prepare_index()
        with steps.counted_step("first load of the index, documents", _count_searchable(source)) as progress:
            documents.load_all(int(Sequence.from_position(start)), progress)
        with steps.step("Spark: session and stream") as detail:
            spark = local_session("penstock demo", log_file=folder / "spark.log")
            started.callback(stop_session, spark)
            detail("the first batch loads Spark's Python processes")
            numbers = PipelineNumbers(server.report, index, letters)
            sync = IndexSync([documents], server=server.address, destination="shop", on_batch=numbers.add_batch)
            checkpoint = folder / "checkpoint"
            query = sync.start(spark, checkpoint, start)
            started.callback(query.stop)
            client = started.enter_context(closing(FlightClient(server.address, "shop")))
            changes = StreamProgress(client, lambda: read_applied(checkpoint, start), sync.filter)
            pipeline = DemoPipeline(source, index, query, numbers, IndexProof(source, spec, index, changes))
            _warm_up(pipeline)
        yield pipeline


def _count_searchable(source: SourceSettings) -> int:
    """Return how many orders should be searchable."""
    with closing(connect(source)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM shop.orders WHERE state IN %s", (SEARCHABLE,))
        (count,) = cursor.fetchone() or (0,)
        return int(count)


def _warm_up(pipeline: DemoPipeline) -> None:
    """Send one change through everything, so that the first one a person makes is not the slow one."""
    with closing(connect(pipeline.source)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, name, price FROM shop.product ORDER BY id LIMIT 1")
        key, name, price = cursor.fetchone() or (0, "", Decimal(0))
    for text in (f"{name} (warm)", name):
        timed = pipeline.make_change(ChangeProduct(product=key, name=text, price=price), _FIRST_CHANGE_S)
        if timed.latency_ms is None:
            raise PenstockError(f"the first change did not reach the index within {_FIRST_CHANGE_S:g} s")
