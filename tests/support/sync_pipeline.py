"""A whole pipeline as users run it, and what may happen to it: database, capture server, sync and search server, each a
process of its own that can be killed, restarted or made to refuse."""

import json
import os
import signal
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support.capture import poll
from tests.support.refusing_proxy import RefusingProxy
from tests.support.serve_process import ServeProcess, serve_process
from tests.support.shop import INDEXES, compare, create_shop, expected_documents, read_documents, spec_texts
from tests.support.sync_process import PENSTOCK, SyncProcess, find_descendants, find_workers

DATABASE = "shop"
_START_S = 120.0
_SMALL_BYTES = 16 << 10


class SyncPipeline:
    """The shop's documents on a search server, kept by `penstock serve` and `penstock sync`."""

    def __init__(
        self,
        folder: Path,
        database: Any,
        search: Any,
        serve: ServeProcess,
        proxy: RefusingProxy,
        wrap: Callable[[list[Any]], list[Any]],
    ) -> None:
        self.folder, self.database, self.search, self.serve = folder, database, search, serve
        self._proxy = proxy  # the way to the search server
        self.checkpoint = folder / "state" / "checkpoint"
        self._wrap = wrap
        self.outputs: list[list[str]] = []  # of every sync process
        self.sync = self._launch()

    def _launch(self) -> SyncProcess:
        environment = {**os.environ, "PENSTOCK_PASSWORD": self.database.password}
        command: list[Any] = [PENSTOCK, "-v", "sync", *(self.folder / f"{name}.yml" for name in INDEXES)]
        command += ["--port", str(self.database.port), "--user", self.database.user]
        command += ["--server", f"127.0.0.1:{self.serve.flight}", "--index", self._proxy.url]
        sync = SyncProcess(self._wrap([*command, "--checkpoint", self.checkpoint]), environment)
        self.outputs.append(sync.lines)
        return sync

    def wait_until_following(self) -> None:
        """Wait until sync has loaded the documents, or has resumed."""
        assert poll(lambda: self.sync.has_said("following changes") or self.sync.has_ended, _START_S), self.tail()
        assert not self.sync.has_ended, self.tail()

    def stop(self) -> None:
        """Stop the sync process that runs now."""
        self.sync.stop()

    def peak_memory_kib(self) -> int:
        """Return the sum of the largest sizes of the sync process, its JVM and its Python workers."""
        total = 0
        for process in (self.sync.process.pid, *find_descendants(self.sync.process.pid)):
            with suppress(OSError):
                status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
                total += sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
        return total

    def tail(self) -> str:
        """Return the last lines of sync, for messages."""
        return "".join(self.sync.lines[-40:])

    def indexes_of(self, alias: str) -> list[str]:
        """Return the indexes that an alias leads to."""
        with urllib.request.urlopen(f"{self.search.url}/_alias/{alias}", timeout=30) as answer:  # noqa: S310 - ours
            return sorted(json.load(answer))

    def differences(self) -> dict[str, str]:
        """Return what is wrong with each index, in words."""
        expected = expected_documents(self.database, DATABASE)
        differences: dict[str, str] = {}
        for name in INDEXES:
            if wrong := compare(expected[name], read_documents(self.search.url, name)):
                differences[name] = str(wrong)
        return differences

    def differences_at_rest(self, deadline_s: float) -> dict[str, str]:
        """Wait until all indexes are equal to the tables; return what still differs at the deadline."""

        def is_equal() -> bool:
            assert not self.sync.has_ended, self.tail()
            with suppress(RuntimeError, OSError):  # the search server is just starting
                return not self.differences()
            return False

        return {} if poll(is_equal, deadline_s) else self.differences()

    # What may happen; each returns when what was taken away is back.

    def restart_search(self) -> None:
        """Kill the search server, and start it again a moment later."""
        known = len(self.sync.lines)
        self.search.kill()
        self._wait_for_retry(known)
        self.search.start()

    def refuse_writes(self) -> None:
        """Let the search server answer 429 for every document, as it does when its disk is nearly full."""
        known = len(self.sync.lines)
        self._set_block(is_on=True)
        try:
            self._wait_for_retry(known)
        finally:
            self._set_block(is_on=False)

    def refuse_requests(self) -> None:
        """Let the search server answer 503, then 429, to every request; then 413 to all that are not small."""
        for status in (503, 429):
            known, refused = len(self.sync.lines), self._proxy.refused[status]
            self._proxy.refuse(status)
            try:
                self._wait_for_retry(known)
                assert poll(lambda refused=refused, status=status: self._proxy.refused[status] > refused + 2, 60)
            finally:
                self._proxy.accept()
        self._proxy.refuse(413, _SMALL_BYTES)
        try:
            known = self._proxy.refused[413]
            poll(lambda: self._proxy.refused[413] > known, 3)  # only a larger write meets it
        finally:
            self._proxy.accept()

    def restart_database(self) -> None:
        """Kill the database, and start it again."""
        self.database.kill()
        self.database.start()

    def restart_server(self) -> None:
        """Kill the capture server, and start it again."""
        self.serve.kill()
        self.serve.start()

    def restart_sync(self) -> None:
        """Kill the driver, and start it again with the same checkpoint."""
        self.sync.kill()
        self.sync = self._launch()
        self.wait_until_following()

    def kill_workers(self) -> None:
        """Kill the processes in which Spark runs Python."""
        for process in find_workers(self.sync.process.pid):
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)

    def kill_jvm(self) -> None:
        """Kill the Java process of Spark, which ends sync."""
        for process in self.sync.children:
            os.kill(process, signal.SIGKILL)

    def _wait_for_retry(self, known: int) -> None:
        """Wait until sync has met what happened, and says so in a line after the known ones."""
        assert poll(lambda: any("retry" in line for line in self.sync.lines[known:]) or self.sync.has_ended, 90), (
            self.tail()
        )
        assert not self.sync.has_ended, self.tail()

    def _set_block(self, *, is_on: bool) -> None:
        body = {"index.blocks.read_only_allow_delete": True if is_on else None}
        request = urllib.request.Request(  # noqa: S310 - ours
            f"{self.search.url}/_all/_settings",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
            method="PUT",
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - ours
            answer.read()


@contextmanager
def sync_pipeline(
    folder: Path,
    database: Any,
    search: Any,
    wrap: Callable[[list[Any]], list[Any]] = lambda command: command,
) -> Iterator[SyncPipeline]:
    """Create the shop, and run the pipeline over it; `wrap` changes the command of sync, for example to run it with
    another disk."""
    create_shop(database, DATABASE)
    for name, text in spec_texts(DATABASE).items():
        (folder / f"{name}.yml").write_text(text, encoding="utf-8")
    (folder / "state").mkdir()
    body = json.dumps({"aliases": {"taken": {}}}).encode()  # that one of the specs wants
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{search.url}/of-others", body, headers, method="PUT")  # noqa: S310 - ours
    urllib.request.urlopen(request, timeout=60).close()  # noqa: S310
    with ExitStack() as opened:
        serve = opened.enter_context(serve_process(folder, database, data_dir=str(folder / "data")))
        serve.start()
        proxy = opened.enter_context(RefusingProxy(search.port))
        pipeline = SyncPipeline(folder, database, search, serve, proxy, wrap)
        opened.callback(pipeline.stop)
        pipeline.wait_until_following()
        yield pipeline
