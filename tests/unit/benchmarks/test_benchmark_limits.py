"""No benchmark waits for ever."""

import time

import pytest

from benchmarks import store
from benchmarks.__main__ import BenchmarkTimeoutError, main, time_limit
from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.store import BatchSize, MemoryStorage
from tests.twins.blocks import block_of


def test_a_benchmark_that_waits_for_ever_is_ended() -> None:
    with pytest.raises(BenchmarkTimeoutError, match=r"'slow' did not end within 0\.1 s"), time_limit("slow", 0.1):
        time.sleep(60)


def test_an_option_that_is_none_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--small"]) == 2
    assert "there is no option --small; there is --tiny" in capsys.readouterr().err


@pytest.mark.timeout(60)
def test_blocks_that_are_larger_than_a_batch_go_through_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "SIZE", BatchSize(1))
    at, blocks = 4, list[Block]()
    for number in range(64):
        events: list[tuple[int, int]] = [(10, Entry.BEGIN), (10, Entry.ROWS), (10, Entry.END)]
        block, _ = block_of(events, start=at, time_us=number * 1000)
        blocks.append(block)
        at = block.end.offset
    size = sum(block.size_bytes for block in blocks)
    assert store.through(MemoryStorage(size // 4), blocks, 2) > 0
