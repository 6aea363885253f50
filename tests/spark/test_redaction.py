"""The secrets of a query are not in what Spark shows, stores and logs of it."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.config import InstanceSettings, ServerSettings
from penstock.server import Server
from penstock.testing import DatabaseServer
from tests.spark.test_change_reads import progress_of
from tests.spark.test_embedded import state as state  # noqa: PLC0414 - a fixture
from tests.spark.test_stream_source import Collected, run
from tests.support.capture import execute, poll, source_of
from tests.support.spark_pages import last_execution, read_page, spark_pages

SECRET = "hush-hush"


@pytest.fixture
def served(mariadb: DatabaseServer) -> Iterator[Server]:
    settings = ServerSettings.with_flight_only(InstanceSettings(source=source_of(mariadb)))
    flight = settings.flight.model_validate({"port": 0, "tokens": {"lake": SECRET}})
    server = Server(settings.model_copy(update={"flight": flight}))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def account(mariadb: DatabaseServer) -> Iterator[str]:
    execute(mariadb, f"CREATE USER hushed IDENTIFIED BY '{SECRET}'", "GRANT ALL ON *.* TO hushed")
    yield "hushed"
    execute(mariadb, "DROP USER hushed")


@pytest.fixture
def token_options(served: Server) -> dict[str, str]:
    return {"server": served.address, "token": SECRET}


@pytest.fixture
def password_options(mariadb: DatabaseServer, account: str, state: Path) -> dict[str, str]:
    options = {"host": mariadb.host, "port": str(mariadb.port), "user": account, "stateDir": str(state)}
    return {**options, "password": SECRET}


@pytest.mark.parametrize("secret", ["token_options", "password_options"])
def test_secrets_are_not_shown(
    spark: SparkSession,
    mariadb: DatabaseServer,
    database: Callable[[DatabaseServer], str],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    secret: str,
) -> None:
    options, table = request.getfixturevalue(secret), f"{database(mariadb)}.item"
    execute(mariadb, f"CREATE TABLE {table} (id INT PRIMARY KEY)", f"INSERT INTO {table} VALUES (1)")
    texts, ui = dict[str, str](), spark.sparkContext.uiWebUrl
    assert ui is not None
    before = last_execution(ui)
    with event_log(spark, tmp_path / "events") as file:
        frame = spark.read.format("penstock").options(**options, table=table).load()
        assert frame.count() == 1
        plan = frame._jdf.queryExecution()
        texts |= {mode: plan.explainString(explain_mode(spark, mode)) for mode in ("extended", "formatted", "cost")}
        texts["plan"] = plan.toString()
        with pytest.raises(Exception, match=r"no table no\.such") as failure:
            spark.read.format("penstock").options(**options, table="no.such").load()
        texts["error"] = str(failure.value)
        follow = spark.readStream.format("penstock").options(**options, table=table, startingPosition="earliest").load()
        seen = Collected()
        query = run(follow, seen, tmp_path / "checkpoint")
        try:
            assert poll(lambda: len(seen.rows) == 1 and query.lastProgress is not None, 60), query.exception()
            texts["progress"] = json.dumps(progress_of(query)[-1])
            texts["stream"] = query._jsq.explainInternal(True)
            pages = spark_pages(ui, after_execution=before)
            pages["statistics"] = read_page(f"{ui}/StreamingQuery/statistics/?id={query.runId}")
        finally:
            query.stop()
    texts |= {
        path.name: path.read_text(errors="replace") for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()
    }
    texts["events"] = file.read_text()
    assert all("penstock" in texts[name].lower() for name in ("extended", "plan", "stream", "events"))
    assert [name for name, text in texts.items() if SECRET in text] == []
    # The pages show the queries: the plans of both reads, and the stream that runs.
    queries = [page for path, page in pages.items() if path.startswith("SQL/execution")]
    assert sum("penstock" in page for page in queries) >= 2
    assert str(query.runId) in pages["StreamingQuery/"]
    assert [name for name, page in pages.items() if SECRET in page] == []


def explain_mode(spark: SparkSession, name: str) -> Any:
    assert spark._jvm is not None
    return spark._jvm.org.apache.spark.sql.execution.ExplainMode.fromString(name)


@contextmanager
def event_log(spark: SparkSession, folder: Path) -> Iterator[Path]:
    """Let Spark write its event log, which is set at its start otherwise; give the file."""
    folder.mkdir()
    jvm, context = spark._jvm, spark.sparkContext._jsc.sc()
    assert jvm is not None
    conf = context.conf().set("spark.eventLog.compress", "false").set("spark.eventLog.rolling.enabled", "false")
    nothing = jvm.scala.Option.apply(None)
    log = jvm.org.apache.spark.scheduler.EventLoggingListener("redaction", nothing, jvm.java.net.URI(str(folder)), conf)
    log.start()
    context.addSparkListener(log)
    try:
        yield folder / "redaction"
    finally:
        context.listenerBus().waitUntilEmpty()
        context.removeSparkListener(log)
        log.stop()
