"""The README's tour, run as it is written: its SQL, its commands, its Python, its YAML, and what it says they print."""

import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.search.embedded import EmbeddedIndex
from penstock.testing import free_port
from tests.support.capture import execute, poll

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent


def blocks(language: str) -> list[str]:
    tour = README.partition("## A tour in five minutes")[2]
    return re.findall(rf"```{language}\n(.*?)```", tour, re.DOTALL)


class Running:
    """A process whose output goes to a file: a pipe would stay open as long as any child of it lives."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def output(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def says(self, text: str, seconds: float = 200) -> bool:
        return poll(lambda: text in self.output or self.process.poll() is not None, seconds) and text in self.output


@contextmanager
def running(command: list[str], folder: Path, stop: signal.Signals = signal.SIGINT) -> Iterator[Running]:
    environment = {**os.environ, "PENSTOCK_PASSWORD": "change-me", "PATH": f"{BIN}:{os.environ['PATH']}"}
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".log", delete=False) as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield Running(process, Path(log.name))
    finally:
        process.send_signal(stop)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.mark.mariadb
@pytest.mark.timeout(900)
def test_the_tour_does_what_it_says(private_server: Callable[..., Any], tmp_path: Path) -> None:
    server = private_server("mariadb")
    listen = free_port()
    (sql,), (spark, arrow), (yaml,) = blocks("sql"), blocks("python"), blocks("yaml")
    serve, sync = (block.strip().splitlines()[-1] for block in blocks("sh"))
    execute(server, *filter(str.strip, sql.split(";\n")))

    def local(text: str) -> str:
        return text.replace("3306", str(server.port)).replace("11115", str(listen))

    with running([*local(serve).split(), "--flight", str(listen)], tmp_path) as served:
        assert served.says(f"serving Arrow Flight on 127.0.0.1:{listen}"), served.output
        # Both start at the log's end: change something until they have seen one.
        price = itertools.cycle(range(1000, 2000))

        def is_printed(reading: Running) -> bool:
            execute(server, f"UPDATE shop.product SET price = {next(price)} WHERE id = 1")
            return "update_postimage" in reading.output or reading.process.poll() is not None

        (tmp_path / "arrow.py").write_text(local(arrow))
        (tmp_path / "tour.py").write_text(local(spark))
        with (
            running([sys.executable, "tour.py"], tmp_path, signal.SIGTERM) as reading,
            running([sys.executable, "-u", "arrow.py"], tmp_path, signal.SIGTERM) as plain,
        ):
            assert poll(lambda: is_printed(plain), 60), plain.output
            assert "'name': 'copper kettle', 'price': Decimal('1" in plain.output
            assert poll(lambda: is_printed(reading), 200), reading.output
            assert re.search(
                r"\|1 +\|copper kettle *\|1\d{3}\.00\|update_postimage\|\d+ *\|0-1-\d+ *\|\[price\]", reading.output
            ), reading.output
        (tmp_path / "product.yml").write_text(yaml)
        following = [*sync.split(), "--port", str(server.port), "--server", f"127.0.0.1:{listen}"]
        with running(following, tmp_path) as synced:
            assert synced.says("loaded 2 documents"), synced.output
            execute(server, "UPDATE shop.store SET name = 'Zircon' WHERE id = 2")
            assert poll(lambda: search_ids(tmp_path, "zircon") == ["2"] or synced.process.poll() is not None, 200)
            assert search_ids(tmp_path, "zircon") == ["2"], synced.output
        assert synced.process.returncode == 0, synced.output
        execute(server, "UPDATE shop.store SET name = 'Opal' WHERE id = 1", "DELETE FROM shop.product WHERE id = 2")
        with running(following, tmp_path) as again:
            assert poll(lambda: search_ids(tmp_path, "opal") == ["1"] and not search_ids(tmp_path, "zircon"), 90), (
                again.output
            )
            assert "first load" not in again.output
    assert served.process.returncode == 0


def search_ids(folder: Path, word: str) -> list[str]:
    with EmbeddedIndex.open(folder / "product-index", read_only=True) as index:
        return [hit.id for hit in index.search(word)]
