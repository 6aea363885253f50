"""`penstock.spark.session()` tells its user which settings it has applied, and tells the truth."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, StructField, StructType

from penstock.spark.sessions import register_source
from penstock.spark.source import PenstockDataSource

PROGRAM = """
import json
from pyspark.sql import SparkSession
import penstock.spark

plain = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
found = [penstock.spark.applied_settings(penstock.spark.session("late"))]
plain.stop()
settings = {"spark.sql.shuffle.partitions": "5"}
found.append(penstock.spark.applied_settings(penstock.spark.session("orders", settings, master="local[1]")))
print(json.dumps(found))
"""
SOCKETS = "spark.python.unix.domain.socket.enabled"
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
PARTITIONS = "spark.sql.shuffle.partitions"


@pytest.mark.timeout(300)
def test_a_session_says_which_settings_it_has() -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK"))}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=240, check=False, env=environment
    )
    assert ended.returncode == 0, ended.stderr
    late, fresh = json.loads(ended.stdout.splitlines()[-1])
    lines = [line for line in ended.stderr.splitlines() if line.startswith("penstock:")]
    assert len(lines) == 2, ended.stderr
    # There was a session already: what only its start could set is not claimed.
    assert SOCKETS not in late
    assert late[MANAGER]
    assert "not applied, since there was a Spark session already" in lines[0]
    assert SOCKETS in lines[0].partition("not applied")[2]
    check_line(lines[0].partition("; not applied")[0], late)
    assert fresh[SOCKETS] == "true"
    assert PARTITIONS not in fresh  # the user's own wins
    assert "not applied" not in lines[1]
    assert lines[1].endswith("; checkpoints must be on a local disk")
    check_line(lines[1].removesuffix("; checkpoints must be on a local disk"), fresh)


def check_line(line: str, settings: dict[str, Any]) -> None:
    told = line.partition("(local[1]): ")[2].split(", ")
    assert told == [f"{key}={value}" for key, value in settings.items()]


def test_a_source_is_found_that_spark_has_not_listed(spark: SparkSession) -> None:
    class Unlisted(PenstockDataSource):  # Spark's worker, which does not know this module, gets it by value
        @classmethod
        def name(cls) -> str:
            return "penstock_unlisted"

        def schema(self) -> StructType:
            return StructType([StructField("id", IntegerType())])

    for source in (PenstockDataSource, Unlisted, Unlisted):
        register_source(spark, source)
    options = {"server": "127.0.0.1:9", "table": "shop.product"}
    assert spark.readStream.format("penstock_unlisted").options(**options).load().columns == ["id"]
