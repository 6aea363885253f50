"""The numbers of the demo's picture: rates of the last second, one look for all pages, and what is wrong."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from penstock.demo.numbers import PipelineNumbers
from penstock.search.dead_letters import DeadLetters
from penstock.search.embedded import EmbeddedIndex
from penstock.search.index import FieldKind, Rejection
from penstock.spark.index_sync import SyncBatch


@dataclass
class Pipeline:
    """The status of a server and the query of Spark, as far as the numbers ask for them."""

    latest: int = 700
    read_to: int | None = None
    failure: Exception | None = None
    now: float = 100.0
    looks: list[float] = field(default_factory=list[float])

    def status(self) -> dict[str, Any]:
        self.looks.append(self.now)
        instance = {
            "state": "following",
            "behind_s": 0.0,
            "latest": {"file": "binlog.000003", "offset": self.latest},
            "counters": {"transactions": 5, "events": 31},
            "store": {"entries": 2, "bytes": 80, "put_sequence": 9, "kind": "memory"},
        }
        return {"instances": [instance]}

    @property
    def lastProgress(self) -> Any:  # noqa: N802 - Spark's name
        if self.read_to is None:
            return None
        return {"sources": [{"endOffset": {"file": "binlog.000003", "offset": self.read_to}}]}

    def exception(self) -> Exception | None:
        return self.failure


@pytest.fixture
def pipeline() -> Pipeline:
    return Pipeline()


@pytest.fixture
def letters(tmp_path: Path) -> Any:
    with DeadLetters.open(tmp_path / "letters.sqlite") as letters:
        yield letters


@pytest.fixture
def numbers(pipeline: Pipeline, letters: DeadLetters, tmp_path: Path) -> Any:
    with EmbeddedIndex.open(tmp_path / "index") as index:
        index.prepare({"name": FieldKind.TEXT})
        report: Any = pipeline
        yield PipelineNumbers(report, index, letters, lambda: pipeline.now)


def batch(changes: int, documents: int, seconds: float = 0.08) -> SyncBatch:
    return SyncBatch(1, changes, 0, documents, from_log=0, rejected=0, seconds=seconds, lag_s=0.4)


def test_rates_are_those_since_the_last_look(pipeline: Pipeline, numbers: PipelineNumbers) -> None:
    first = numbers.read(pipeline)
    assert first["spark"] == {"position": None, "changes_per_s": 0.0, "batch_ms": None}
    assert first["log"] == {"file": "binlog.000003", "transactions": 5, "events": 31}
    assert first["store"] == {"entries": 2, "bytes": 80, "put_sequence": 9}
    numbers.add_batch(batch(3, 40))
    numbers.add_batch(batch(1, 20))
    pipeline.now += 2
    second = numbers.read(pipeline)
    assert (second["spark"]["changes_per_s"], second["spark"]["batch_ms"]) == (2, 80)
    assert second["documents"] == {"per_s": 30, "changes": 4, "documents": 60}
    pipeline.now += 1
    third = numbers.read(pipeline)
    assert third["spark"]["changes_per_s"] == 0
    assert third["documents"] == {"per_s": 0, "changes": 4, "documents": 60}


def test_pages_share_one_look(pipeline: Pipeline, numbers: PipelineNumbers) -> None:
    first = numbers.read(pipeline)
    numbers.add_batch(batch(3, 40))
    pipeline.now += 0.5
    assert numbers.read(pipeline) is first
    pipeline.now += 0.5
    assert numbers.read(pipeline)["spark"]["changes_per_s"] == 3
    assert len(pipeline.looks) == 2


def test_there_is_no_lag_when_the_whole_log_is_in_the_index(pipeline: Pipeline, numbers: PipelineNumbers) -> None:
    numbers.add_batch(batch(1, 1))
    pipeline.read_to = 600
    assert numbers.read(pipeline)["index"]["lag_s"] == 0.4
    pipeline.read_to, pipeline.now = 700, pipeline.now + 1
    assert numbers.read(pipeline)["index"]["lag_s"] == 0


def test_dead_letters_and_a_stream_that_stopped_are_told(
    pipeline: Pipeline, numbers: PipelineNumbers, letters: DeadLetters
) -> None:
    assert (numbers.read(pipeline)["index"]["dead_letters"], numbers.read(pipeline)["problem"]) == (0, "")
    letters.add("orders", [Rejection("1", "too large", 7)])
    pipeline.failure, pipeline.now = RuntimeError("no more memory"), pipeline.now + 1
    told = numbers.read(pipeline)
    assert told["index"]["dead_letters"] == 1
    assert told["problem"] == "the stream stopped: no more memory"
