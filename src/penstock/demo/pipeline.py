"""The way of a change, all of it on this machine: MariaDB → capture → Flight → Spark → embedded index.

Everything that is started is stopped again, in the opposite order, whatever happens.
"""

import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from penstock.config import InstanceSettings, ServerSettings, SourceSettings
from penstock.demo.shop import SPEC, ShopSize, create_shop
from penstock.demo.steps import StepDisplay
from penstock.document import DocumentBuilder, DocumentPlan, load_all_documents
from penstock.errors import PenstockError
from penstock.model import Sequence
from penstock.search.embedded import EmbeddedIndex
from penstock.server import Server
from penstock.source import RowQuery, connect, current_position
from penstock.spark.failure import cause_of
from penstock.spark.index_sync import IndexSync
from penstock.spark.sessions import check_java, local_session, stop_session
from penstock.testing import MariaDB, MariaDBInstallation

DEADLINE_S = 60.0
_POLL_S = 0.002


@dataclass(frozen=True, slots=True)
class DemoPipeline:
    """The running parts that the demo's page or check needs."""

    source: SourceSettings
    index: EmbeddedIndex
    query: Any  # Spark's StreamingQuery

    def wait_until(self, is_so: Callable[[], bool], deadline_s: float = DEADLINE_S) -> float | None:
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
        with steps.counted_step("a shop, products", size.products) as progress, closing(connect(source)) as connection:
            create_shop(connection, size, progress)
            start = current_position(connection, source)
        with steps.step("capture: the server follows the log from here on"):
            instance = InstanceSettings(destination="shop", source=source, start=str(start))
            server = Server(ServerSettings.with_flight_only(instance))
            started.callback(server.stop)
            server.start()
            tables = {table.name: table for table in server.instances["shop"].describe_tables(SPEC.tables)}
            plan = DocumentPlan.from_spec(SPEC, tables)
        reader = RowQuery(source)
        started.callback(reader.close)
        builder = DocumentBuilder(plan, reader)
        index = started.enter_context(EmbeddedIndex.open(folder / "index"))
        index.prepare(plan.fields)
        with steps.counted_step("first load of the index, documents", _count_searchable(source)) as progress:
            load_all_documents(builder, index, int(Sequence.from_position(start)), progress)
        with steps.step("Spark: session and stream") as detail:
            spark = local_session("penstock demo", log_file=folder / "spark.log")
            started.callback(stop_session, spark)
            detail("the first batch loads Spark's Python processes")
            sync = IndexSync(plan, builder, index, server=server.address, destination="shop")
            query = sync.start(spark, folder / "checkpoint", start)
            started.callback(query.stop)
            pipeline = DemoPipeline(source, index, query)
            _warm_up(pipeline)
        yield pipeline


def _count_searchable(source: SourceSettings) -> int:
    """Return how many products should be searchable."""
    with closing(connect(source)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM shop.product WHERE state IN ('on_sale', 'sold_out')")
        (count,) = cursor.fetchone() or (0,)
        return int(count)


def _warm_up(pipeline: DemoPipeline) -> None:
    """Send one change through everything, so that the first one a person makes is not the slow one."""
    with closing(connect(pipeline.source)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, name FROM shop.product WHERE state = 'on_sale' ORDER BY id LIMIT 1")
        key, name = cursor.fetchone() or (0, "")
        for text in (f"{name} (warm)", name):
            cursor.execute("UPDATE shop.product SET name = %s WHERE id = %s", (text, key))
            if pipeline.wait_until(lambda text=text: (pipeline.index.get(str(key)) or {}).get("name") == text) is None:
                raise PenstockError(f"the first change did not reach the index within {DEADLINE_S:g} s")
