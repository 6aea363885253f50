"""The Spark session that all tests share: starting one takes seconds and half a gigabyte.

It runs in this process, or on the cluster that the variable `PENSTOCK_TEST_SPARK_MASTER` names.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock.spark
from penstock.spark.sessions import local_session, stop_session
from tests.services.java import QUICK

MASTER_VARIABLE = "PENSTOCK_TEST_SPARK_MASTER"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder: Path = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.driver.memory": "1g",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "true",  # test_redaction.py looks at the pages
        "spark.ui.port": "0",
    }
    if master := os.environ.get(MASTER_VARIABLE):
        cluster = {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m"}
        cluster |= {f"spark.{part}.extraJavaOptions": " ".join(QUICK) for part in ("driver", "executor")}
        session = penstock.spark.session("penstock tests", settings | cluster, master=master)
    else:
        session = local_session("penstock tests", settings, log_file=folder / "spark.log")
    yield session
    stop_session(session)
