"""The Spark session that all tests share: starting one takes seconds and half a gigabyte."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.spark.sessions import local_session, stop_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder: Path = tmp_path_factory.mktemp("spark")
    settings = {"spark.driver.memory": "1g", "spark.sql.warehouse.dir": str(folder / "warehouse")}
    session = local_session("penstock tests", settings, log_file=folder / "spark.log")
    yield session
    stop_session(session)
