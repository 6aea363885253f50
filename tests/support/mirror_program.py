"""A driver program for `spark-submit`: it keeps a mirror of a ledger's accounts, and records what it does in files.

    spark-submit mirror_program.py FOLDER RUN

| file of FOLDER           | content                                                                                 |
|--------------------------|-----------------------------------------------------------------------------------------|
| `options.json`           | options of the source                                                                   |
| `checkpoint/`            | Spark's                                                                                 |
| `mirror.json`            | the accounts after the last batch                                                       |
| `batches.jsonl`          | a line for each batch that was applied, also when it is applied once more               |
| `RUN/attempts/`          | a file for each attempt of a task, named BATCH-PART-ATTEMPT                             |
| `pause/`                 | patterns of such names, and of BATCH-applied: what matches waits while the file is there |
| `paused/`                | BATCH-applied, while that waits                                                         |
| `stop`, `RUN/range.json` | when the one is there, the query ends, and the whole range is read once more as a batch |
| `finish`                 | when it is there, the program ends                                                      |
"""

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import penstock.spark

ROW = "id INT, balance INT, note BIGINT, _change_type STRING, _seq BIGINT, _row BIGINT"
LONGEST_PAUSE_S = 300


class Mirror:
    """What the stream makes of the table. A batch may be applied any number of times, if it has the same rows."""

    def __init__(self, folder: Path, run: str) -> None:
        self._folder, self._run = folder, run
        (folder / run / "attempts").mkdir(parents=True, exist_ok=True)
        file, log = folder / "mirror.json", folder / "batches.jsonl"
        self._accounts: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        self._batches = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def __call__(self, batch: DataFrame, number: int) -> None:
        narrow = batch.select("id", "balance", "note", "_change_type", "_seq", "_row")
        table = narrow.mapInArrow(watched(self._folder, self._run, number), ROW).toArrow()
        rows = sorted(table.to_pylist(), key=lambda row: (row["_seq"], row["_row"], row["id"]))
        self._accounts |= {
            str(row["id"]): [row["balance"], row["note"]]
            for row in rows
            if row["_change_type"] in {"snapshot", "insert", "update_postimage"}
        }
        total = sum(balance for balance, _ in self._accounts.values())
        parts = batch.rdd.getNumPartitions()
        digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
        done = {"run": self._run, "batch": number, "rows": len(rows), "parts": parts, "sum": total, "digest": digest}
        self._batches.append(done)
        write(self._folder / "mirror.json", self._accounts)
        write(self._folder / "batches.jsonl", *self._batches)
        name = f"{number}-applied"
        if is_paused(self._folder, name):
            (self._folder / "paused" / name).touch()
            wait_while_paused(self._folder, name)
            (self._folder / "paused" / name).unlink()


def watched(folder: Path, run: str, number: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what the tasks of a batch do with their rows: shorten the notes, and record the attempt."""

    def watch(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None
        name = f"{number}-{task.partitionId()}-{task.attemptNumber()}"
        record = folder / run / "attempts" / name
        attempt = {"jvm": parent_of(os.getppid()), "host": os.environ["SPARK_LOCAL_IP"], "is_done": False}
        digest = hashlib.sha256()
        for count, batch in enumerate(batches):
            if count == 0:
                write(record, attempt)
                wait_while_paused(folder, name)
            notes = pa.array([crc32(note.encode()) for note in batch["note"].to_pylist()], pa.int64())
            short = batch.set_column(2, "note", notes)
            digest.update(json.dumps(short.to_pylist()).encode())
            yield short
        write(record, attempt | {"is_done": True, "digest": digest.hexdigest()})

    return watch


def parent_of(process: int) -> int:
    """Return the process that has started another one: of Spark's Python daemon, the executor."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def is_paused(folder: Path, name: str) -> bool:
    return any(fnmatch(name, path.name) for path in (folder / "pause").iterdir())


def wait_while_paused(folder: Path, name: str) -> None:
    deadline = time.monotonic() + LONGEST_PAUSE_S
    while is_paused(folder, name):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{name} was paused for longer than {LONGEST_PAUSE_S} s")
        time.sleep(0.02)


def wait_for(file: Path) -> None:
    while not file.exists():
        time.sleep(0.05)


def write(file: Path, *lines: Any) -> None:
    """Replace a file by lines of JSON, at once for its readers."""
    new = file.with_name(f".{file.name}-{os.getpid()}")
    new.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    new.replace(file)


def read_range(spark: SparkSession, options: dict[str, str]) -> dict[str, Any]:
    """Read the whole range as an ordinary DataFrame, and let Spark find the last state of each account."""
    changes = spark.read.format("penstock").options(**options).load()
    after = changes.where("_change_type in ('insert', 'update_postimage')")
    last = after.groupBy("id").agg(f.max_by("balance", f.struct("_seq", "_row")).alias("balance"))
    balances = {str(row["id"]): row["balance"] for row in last.collect()}
    return {"rows": changes.count(), "parts": changes.rdd.getNumPartitions(), "balances": balances}


def main(folder: Path, run: str) -> None:
    options: dict[str, str] = json.loads((folder / "options.json").read_text())
    mirror = Mirror(folder, run)
    spark = penstock.spark.session("mirror")
    frame = spark.readStream.format("penstock").options(**options).load()
    writer = frame.writeStream.foreachBatch(mirror).option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(processingTime="0 seconds").start()
    while not (folder / "stop").exists():
        query.awaitTermination(0.1)  # raises what has ended the query
    query.stop()
    write(folder / run / "range.json", read_range(spark, options))
    wait_for(folder / "finish")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
