"""`penstock serve` as a process of its own, for tests that send it signals or look at what it prints."""

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from penstock.testing import DatabaseServer, free_port
from tests.support.capture import poll


class ServeProcess:
    """Ports are chosen once, so that a server that is started again has the same addresses."""

    def __init__(self, folder: Path, source: DatabaseServer, **instance: Any) -> None:
        self.folder = folder
        self.flight, self.canal, self.admin = free_port(), free_port(), free_port()
        connection = {"host": source.host, "port": source.port, "user": source.user, "password": source.password}
        self.instance: dict[str, Any] = {"source": connection, **instance}
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"grpc://127.0.0.1:{self.flight}"

    @property
    def settings(self) -> dict[str, Any]:
        ports = {"flight": self.flight, "canal": self.canal, "admin": self.admin}
        return {name: {"port": port} for name, port in ports.items()}

    @property
    def output(self) -> str:
        return (self.folder / "serve.out").read_text(encoding="utf-8", errors="replace")

    def launch(self, config: Path | None = None) -> None:
        """Start the process without waiting for anything."""
        if config is None:
            config = self.folder / "server.yml"
            config.write_text(yaml.safe_dump({**self.settings, "instances": [self.instance]}), encoding="utf-8")
        command = [sys.executable, "-c", "from penstock.cli import main; main()", "-v", "serve", str(config)]
        with (self.folder / "serve.out").open("wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out)

    def start(self, config: Path | None = None) -> None:
        self.launch(config)
        assert poll(lambda: "serving Arrow Flight" in self.output or self.has_ended, 90), self.output
        assert not self.has_ended, self.output

    @property
    def has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def stop(self, number: signal.Signals = signal.SIGTERM, seconds: float = 30) -> tuple[int, float]:
        """Send a signal; return the exit code and how many seconds it took."""
        assert self.process is not None
        began = time.monotonic()
        self.process.send_signal(number)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still alive {seconds} s after {number.name}:\n{self.output}") from None
        return code, time.monotonic() - began

    def freeze(self) -> None:
        """Stop the process where it is: it still has its connections, and answers nothing."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        stat = Path(f"/proc/{self.process.pid}/stat")
        assert poll(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")

    def thaw(self) -> None:
        """Let a frozen process run again."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def ask(self, path: str) -> tuple[int, Any]:
        """Status and JSON of a page of the admin port."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.admin}{path}")
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - ours
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())


@contextmanager
def serve_process(folder: Path, source: DatabaseServer, **instance: Any) -> Iterator[ServeProcess]:
    process = ServeProcess(folder, source, **instance)
    try:
        yield process
    finally:
        process.kill()
