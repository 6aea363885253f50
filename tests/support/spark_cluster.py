"""A standalone cluster of Spark on loopback: a master and two workers, as processes out of the pip package.

Each worker has an address of its own (127.0.0.1, 127.0.0.2): Spark runs the second attempt of a slow task on another
host only.
"""

import json
import os
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark

from penstock.testing import PrivateServer, ServerProcess, free_port
from tests.services.java import QUICK, java_home

SPARK_HOME = Path(pyspark.__file__).parent
WORKER_MEMORY = "1g"


def ask_json(url: str, timeout_s: float = 2.0) -> Any:
    """Return what a page of Spark answers, or None while nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as answer:  # noqa: S310 - ours, on loopback
            return json.loads(answer.read())
    except (OSError, ValueError):
        return None


class SparkDaemon(PrivateServer):
    """A master or a worker."""

    main_class: str

    def __init__(self, folder: Path, host: str = PrivateServer.host) -> None:
        super().__init__(folder)
        self.host = host
        self.ui = f"http://{host}:{free_port()}"

    def arguments(self) -> Sequence[str]:
        return ("--host", self.host, "--port", str(self.port), "--webui-port", self.ui.rpartition(":")[2])

    def launch(self) -> ServerProcess:
        return ServerProcess.start(
            self.name,
            [SPARK_HOME / "bin/spark-class", f"org.apache.spark.deploy.{self.main_class}", *self.arguments()],
            log=self.log,
            folder=self.folder,
            environment=spark_environment(self.folder, self.host),
        )


class SparkMaster(SparkDaemon):
    """It knows the workers and gives executors to applications; `url` is what `--master` takes."""

    name = "Spark master"
    main_class = "master.Master"

    @property
    def url(self) -> str:
        return f"spark://{self.host}:{self.port}"

    def state(self) -> dict[str, Any]:
        """Return what the master's page has: its state, the workers and the applications."""
        return ask_json(f"{self.ui}/json/") or {}

    def is_ready(self) -> bool:
        return self.state().get("status") == "ALIVE"


class SparkWorker(SparkDaemon):
    """It starts executors of one core; killed, it takes its executors along."""

    name = "Spark worker"
    main_class = "worker.Worker"

    def __init__(self, folder: Path, master: SparkMaster, host: str) -> None:
        super().__init__(folder, host)
        self._master = master

    def arguments(self) -> Sequence[str]:
        return (*super().arguments(), "--cores", "1", "--memory", WORKER_MEMORY, self._master.url)

    def is_ready(self) -> bool:
        workers = self._master.state().get("workers", ())
        return any(
            (worker["host"], worker["port"], worker["state"]) == (self.host, self.port, "ALIVE") for worker in workers
        )


class SparkCluster:
    """A master and its workers.

    >>> with spark_cluster(tmp_path) as cluster:
    ...     cluster.submit(tmp_path / "driver", program, "--argument")
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.master = SparkMaster(folder / "master")
        self.workers = [SparkWorker(folder / f"worker-{number}", self.master, f"127.0.0.{number}") for number in (1, 2)]

    def start(self) -> None:
        """Return once all workers are known to the master."""
        self.master.start()  # first: a worker that finds no master asks again after ten seconds only
        with ThreadPoolExecutor(len(self.workers)) as pool:
            list(pool.map(lambda worker: worker.start(), self.workers))

    def kill(self) -> None:
        for server in (*self.workers, self.master):
            server.kill()

    def submit(self, folder: Path, program: Path, *arguments: str, settings: Mapping[str, str]) -> ServerProcess:
        """Start a driver with `spark-submit`; killed, it takes its Python along."""
        folder.mkdir(exist_ok=True)
        every = {"spark.driver.host": self.master.host, "spark.executor.memory": "512m", **settings}
        options = [part for key, value in every.items() for part in ("--conf", f"{key}={value}")]
        command = [SPARK_HOME / "bin/spark-submit", "--master", self.master.url, *options, program, *arguments]
        environment = spark_environment(folder, self.master.host)
        return ServerProcess.start(
            "Spark driver", command, log=folder / "driver.log", folder=folder, environment=environment
        )


@contextmanager
def spark_cluster(folder: Path) -> Iterator[SparkCluster]:
    """Run a cluster for as long as the block lasts."""
    cluster = SparkCluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.kill()


def spark_environment(folder: Path, host: str) -> dict[str, str]:
    """Return an environment in which Spark writes below `folder` only, and reads no settings of this machine."""
    settings = folder / "conf"
    settings.mkdir(exist_ok=True)
    kept = {name: value for name in ("PATH", "PYTHONPATH", "HOME") if (value := os.environ.get(name))}
    return {
        **kept,
        "LC_ALL": "C.UTF-8",
        "JAVA_HOME": str(java_home()),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_CONF_DIR": str(settings),
        "SPARK_LOCAL_IP": host,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": " ".join([*QUICK, "-Dspark.master.rest.enabled=false"]),
        "PYSPARK_PYTHON": sys.executable,
    }
