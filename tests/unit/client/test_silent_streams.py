"""A range on which nothing comes is given up; one of a server that only takes its time is not."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.client import FlightClient, link
from penstock.client.channel import ServerStream
from penstock.client.read_watch import ReadWatch
from penstock.errors import ServerUnavailableError
from penstock.instance import Instance
from penstock.model import Position
from tests.support.admin_support import served, settings_with, shop_folder

WAIT_S = 60.0


class StalledRead:
    """Whether a range is being read, and whether it may continue."""

    def __init__(self) -> None:
        self.is_allowed, self.is_reading = threading.Event(), threading.Event()


@pytest.fixture
def stalled(monkeypatch: pytest.MonkeyPatch) -> StalledRead:
    """Let ranges wait before their first block."""
    stall, original = StalledRead(), Instance.read

    def read(instance: Instance, start: Position, end: Position, **options: Any) -> Iterator[Any]:
        stall.is_reading.set()
        assert stall.is_allowed.wait(WAIT_S)
        yield from original(instance, start, end, **options)

    monkeypatch.setattr(Instance, "read", read)
    return stall


@pytest.mark.parametrize("form", ["raw", "decoded"])
def test_a_server_that_takes_its_time_sends_heartbeats(
    tmp_path: Path, stalled: StalledRead, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Each is something that came: the reader waits for as long as they do, and gets all rows in the end."""
    sizes, original = list[int](), ServerStream.read_chunk

    def read_chunk(stream: ServerStream) -> Any:
        chunk = original(stream)
        sizes.append(chunk.data.num_rows)
        if len(sizes) == 3:
            stalled.is_allowed.set()
        return chunk

    monkeypatch.setattr(ServerStream, "read_chunk", read_chunk)
    with served(settings_with(shop_folder(tmp_path / "logs"))) as server:
        client = FlightClient(server.address, "shop", retry_timeout_s=WAIT_S)
        bounds = {"start": client.source_start().to_json(), "end": client.source_end().to_json()}
        if form == "raw":
            request = {"destination": "shop", "form": "raw", **bounds}
            assert sum(len(block) for block in client.read_part(json.dumps(request).encode())) >= 6
        else:
            with penstock.connect(server.address, destination="shop") as there:
                assert sum(batch.num_rows for batch in there.changes("shop.product", **bounds)) == 6
        client.close()
    assert sizes[:3] == [0, 0, 0]


def test_a_read_is_cancelled_once_it_takes_too_long() -> None:
    watch, cancelled = ReadWatch(), threading.Event()
    with watch.limit(cancelled.set, WAIT_S) as quick:
        pass
    with watch.limit(cancelled.set, 0.05) as slow:
        assert cancelled.wait(WAIT_S)
    assert (quick.is_given_up, slow.is_given_up) == (False, True)


def test_a_server_that_says_nothing_is_given_up(
    tmp_path: Path, stalled: StalledRead, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "SILENCE_S", 0.2)  # less than the time between two heartbeats
    with served(settings_with(shop_folder(tmp_path / "logs"))) as server:
        client = FlightClient(server.address, "shop")
        request = {"destination": "shop", "form": "raw"}
        bounds = {"start": client.source_start().to_json(), "end": client.source_end().to_json()}
        with pytest.raises(ServerUnavailableError, match=r"does not answer: .* 0\.2 s"):
            list(client.read_part(json.dumps(request | bounds).encode()))
        client.close()
        stalled.is_allowed.set()
