"""The Spark session that all tests share: starting one takes seconds and half a gigabyte;
and the settings of each JVM that a test starts.

The session runs in this process, or on the cluster that the variable `PENSTOCK_TEST_SPARK_MASTER` names.
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


def write_spark_defaults(folder: Path) -> Path:
    """Write settings for every Spark that a short test starts, and return the folder for `SPARK_CONF_DIR`: most of what
    such a JVM does is compiling itself."""
    settings = folder / "spark-conf"
    settings.mkdir()
    (settings / "spark-defaults.conf").write_text(
        f"spark.driver.extraJavaOptions {' '.join(QUICK)}\n", encoding="ascii"
    )
    return settings


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
