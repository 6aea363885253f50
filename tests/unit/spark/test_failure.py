"""What is read out of Spark's errors."""

import errno
import os
import sqlite3

import pytest

from penstock.errors import ConfigurationError, PenstockError, SourceConnectionError
from penstock.spark.failure import cause_of, error_class_of, is_disk_full, is_worker_lost

QUERY_FAILED = """[STREAM_FAILED] Query [id = 1] terminated with exception: Traceback (most recent call last):
  File "worker.py", line 7, in read
penstock.errors.SourceConnectionError: db1:3306 does not answer

\tat org.apache.spark.Task.run(Task.scala:1)
"""

EOF = "java.io.EOFException: gone"


def test_the_line_and_the_class_of_our_own_error() -> None:
    failure = RuntimeError(QUERY_FAILED)
    assert cause_of(failure) == "db1:3306 does not answer"
    assert error_class_of(failure) is SourceConnectionError
    assert error_class_of(ConfigurationError("no")) is ConfigurationError


@pytest.mark.parametrize(
    ("failure", "cause"),
    [
        (RuntimeError("An error occurred while calling o6.load.\n: java.io.EOFException: gone\n\tat x"), EOF),
        (RuntimeError("one\ntwo"), "one"),
        (RuntimeError(""), "RuntimeError"),
        (PenstockError("x"), "x"),
    ],
)
def test_the_first_line_of_others(failure: Exception, cause: str) -> None:
    assert cause_of(failure) == cause


@pytest.mark.parametrize(
    "failure",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "offsets/7"),
        RuntimeError(
            "An error occurred while calling o1.start.\n: java.io.IOException: No space left on device\n\tat …"
        ),
        sqlite3.OperationalError("database or disk is full"),
        OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)),
    ],
)
def test_a_full_disk_is_recognized(failure: Exception) -> None:
    assert is_disk_full(failure)
    assert not is_disk_full(RuntimeError(QUERY_FAILED))


@pytest.mark.parametrize(
    "text",
    [
        "An error occurred while calling o162.load.\n: java.io.IOException: Broken pipe\n\tat java.io",
        "An error occurred while calling o250.load.\n: java.io.IOException: Stream closed\n\tat java.lang",
        ": org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). Consider setting",
        "[STREAM_FAILED] Query terminated with exception: java.io.EOFException\n\tat java.io",
    ],
)
def test_a_lost_worker_is_recognized(text: str) -> None:
    assert is_worker_lost(RuntimeError(text))
    assert not is_worker_lost(RuntimeError(QUERY_FAILED))
    assert not is_worker_lost(RuntimeError("java.lang.OutOfMemoryError: Java heap space"))
