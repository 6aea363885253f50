"""A Spark session with the settings that make small batches fast on one machine.

Unix sockets between the JVM and Python save about 40 ms a batch; the plain checkpoint manager saves the shell
processes that Hadoop starts for each file, 60 ms and more. The second needs a checkpoint on a local disk.
"""

import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from penstock.deferred_signals import defer_signals
from penstock.errors import ConfigurationError

log = logging.getLogger(__name__)

OLDEST_JAVA = 17
_JVM_EXIT_S = 15
_CHECKPOINT_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
# Safe everywhere: only how the processes of one machine speak to each other, and texts on the terminal.
_ANYWHERE = {
    "spark.sql.session.timeZone": "UTC",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
}
# For one machine: the checkpoint is on its own disk, and one small job at a time runs there.
_ONE_MACHINE = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    _CHECKPOINT_MANAGER: (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.log.level": "ERROR",
}


def session(name: str = "penstock", settings: Mapping[str, str] | None = None, *, master: str = "") -> SparkSession:
    """Return a Spark session with the settings that make small batches fast, as far as they are safe for its master.

    >>> spark = penstock.spark.session("orders")  # on this machine, with all its cores
    >>> spark = penstock.spark.session("orders", master="spark://cdc1:7077")

    Without a master it is the one of `spark-submit`, else this machine. `settings`, and those of `spark-submit`, win
    over ours. One line on standard error says which of ours the session runs with; `applied_settings` returns them.
    """
    submitted = _submitted_settings()
    master = master or (settings or {}).get("spark.master") or submitted.get("spark.master") or "local[*]"
    fast = {key: value for key, value in fast_settings(master).items() if key not in submitted}
    spark = _start(name, master, {**fast, **(settings or {})}, None)
    print(_describe_settings(spark, fast.keys() - (settings or {}).keys()), file=sys.stderr, flush=True)
    return spark


def applied_settings(spark: SparkSession) -> dict[str, str]:
    """Return which of the fast settings a session runs with, whoever has set them.

    >>> penstock.spark.applied_settings(spark)["spark.python.unix.domain.socket.enabled"]
    'true'
    """
    context = spark.sparkContext.getConf()
    # Spark's own settings count as they were when its JVM was set up, whatever a later session asks for.
    present = {
        key: spark.conf.get(key, None) if key.startswith("spark.sql.") else context.get(key)
        for key in {**_ANYWHERE, **_ONE_MACHINE}
    }
    return {
        key: value for key, value in fast_settings(spark.sparkContext.master or "").items() if present[key] == value
    }


def _describe_settings(spark: SparkSession, wanted: Collection[str]) -> str:
    """Return the line that tells users which of our settings a session runs with, and which came too late."""
    applied, master = applied_settings(spark), spark.sparkContext.master or ""
    line = f"penstock: fast settings of this Spark session ({master}): "
    line += ", ".join(f"{key}={value}" for key, value in applied.items()) or "none"
    if late := [key for key in fast_settings(master) if key in wanted and key not in applied]:
        line += f"; not applied, since there was a Spark session already: {', '.join(late)}"
    if _CHECKPOINT_MANAGER in applied:
        line += "; checkpoints must be on a local disk"
    return line


def fast_settings(master: str) -> dict[str, str]:
    """Return the settings that make small batches fast and are safe for a master: all of them on one machine only.

    The checkpoint manager among them needs a checkpoint on a local disk; on a cluster it would lose checkpoints.
    """
    return {**_ANYWHERE, **_ONE_MACHINE} if re.fullmatch(r"local(\[.*\])?", master) else dict(_ANYWHERE)


def local_session(
    name: str, settings: Mapping[str, str] | None = None, *, cores: int = 2, log_file: Path | None = None
) -> SparkSession:
    """Return a session on this machine with the fast settings; `settings` win over ours.

    With `log_file` the JVM writes there instead of to this terminal.
    """
    master = f"local[{cores}]"
    return _start(name, master, {**fast_settings(master), **(settings or {})}, log_file)


def _submitted_settings() -> dict[str, str]:
    """Return the settings of `spark-submit`, which only the JVM knows that has started this process."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    SparkContext._ensure_initialized()  # pyright: ignore  # noqa: SLF001, PGH003 - connects to that JVM
    return dict(SparkConf().getAll())


def _start(name: str, master: str, settings: Mapping[str, str], log_file: Path | None) -> SparkSession:
    check_java()
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Spark's Python processes must find this package: the same interpreter, whatever `python3` on the PATH is.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    before: Any = SparkContext._gateway  # pyright: ignore  # noqa: SLF001, PGH003 - of a session that is there already
    try:
        with _stderr_to(log_file), defer_signals():
            return builder.getOrCreate()
    except BaseException:
        if before is None:
            _end_jvm(SparkContext._gateway)  # pyright: ignore  # noqa: SLF001, PGH003 - see stop_session
        raise


def register_source(spark: SparkSession, source: type[DataSource]) -> None:
    """Let a session know a data source by its name.

    Spark finds ours by itself: a Python worker lists them once. If that worker is killed just then, Spark takes it that
    there are none for as long as its JVM lives, and only what was registered is found.
    """
    try:
        spark.dataSource.register(source)
    except PySparkException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":  # it was found
            raise


@contextmanager
def _stderr_to(file: Path | None) -> Generator[None, None, None]:
    """Let processes that are started inside write their errors to `file`; ours go to the terminal again afterwards."""
    if file is None:
        yield
        return
    terminal = os.dup(2)
    try:
        with file.open("ab") as target:
            os.dup2(target.fileno(), 2)
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)


def check_java() -> None:
    """Raise ConfigurationError when there is no Java that is new enough for Spark, whose own message is a stack
    trace."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=f"{home}/bin" if home else None)
    if program is None:
        problem = f"JAVA_HOME is {home}, but there is no bin/java in it" if home else "there is no `java` on the PATH"
    else:
        told = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
        version = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
        if version and int(version.group(1)) >= OLDEST_JAVA:
            return
        problem = f"{program} is " + (f"Java {version.group(1)}" if version else "not a Java that tells its version")
    raise ConfigurationError(
        f"Spark needs Java {OLDEST_JAVA} or newer: {problem};"
        f" on Debian: apt-get install openjdk-{OLDEST_JAVA}-jre-headless"
    )


def stop_session(spark: SparkSession) -> None:
    """Stop Spark and wait until its JVM, and with it every Python worker, is gone."""
    gateway = spark.sparkContext._gateway  # pyright: ignore  # noqa: SLF001, PGH003 - the JVM has no public handle
    try:
        spark.stop()
    except (Py4JNetworkError, ConnectionError) as error:  # there is nothing left to stop
        log.warning("Spark not stopped: its Java process is gone reason=%s", error)
    _end_jvm(gateway)


def _end_jvm(gateway: Any) -> None:
    process = getattr(gateway, "proc", None)
    if process is None:
        return
    gateway.shutdown()
    process.stdin.close()  # Spark's launcher takes this as the end of its parent
    try:
        process.wait(_JVM_EXIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    SparkContext._gateway = SparkContext._jvm = None  # pyright: ignore  # noqa: SLF001, PGH003 - a later session starts again
