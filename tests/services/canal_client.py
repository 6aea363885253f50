"""canal's own clients: the Java one with a small program that drives it, and the Python one.

Invariant: what was fetched and compiled is what this file and the sources beside it say, by a digest of that.
"""

import hashlib
import json
import subprocess
import sys
from abc import abstractmethod
from pathlib import Path
from typing import Any, Self

from penstock.errors import ServerStartError
from penstock.testing import Report, build_once, has_folder
from tests.services import maven
from tests.services.java import QUICK, java_home
from tests.services.service import Service
from tests.services.system import require_program

_VERSION = "1.1.8"
_JARS = [f"com.alibaba.otter:canal.{name}:{_VERSION}" for name in ("client", "protocol", "common")]
_SOURCES = Path(__file__).parent / "canal"
_QUIET = "-Dlogback.configurationFile="
_PACKAGES = ["canal-python==0.4", "protobuf==3.20.3"]  # its generated code is of that time


class _Client(Service):
    @property
    @abstractmethod
    def made_of(self) -> bytes:
        """When that changes, it is made again."""

    @property
    def _folder(self) -> str:
        return f"{self.name}-{hashlib.sha256(self.made_of).hexdigest()[:12]}"

    def find(self, cache: Path) -> Path | None:
        folder = cache / self._folder
        return folder if has_folder(folder) else None

    def fetch(self, cache: Path, report: Report) -> Path:
        return build_once(cache / self._folder, lambda target: self.build(target, cache, report), report)

    @abstractmethod
    def build(self, target: Path, cache: Path, report: Report) -> None: ...


class JavaClient(_Client):
    name = "canal_java"
    source = _SOURCES / "CanalDriver.java"

    @property
    def made_of(self) -> bytes:
        return _VERSION.encode() + self.source.read_bytes()

    def build(self, target: Path, cache: Path, report: Report) -> None:
        compiler = require_program(["javac"], ["openjdk-17-jdk-headless"], report)
        jars = target / "jars"
        maven.fetch(_JARS, jars, cache=cache, report=report, with_dependencies=True)
        (target / "logback.xml").write_text('<configuration><root level="OFF"/></configuration>', encoding="utf-8")
        _run([compiler, "-cp", f"{jars}/*", "-d", str(target), str(self.source)])

    def command(self) -> list[str]:
        """Return the command of a client that is measured: it may take its time to compile itself."""
        return self._command("-XX:+UseSerialGC")

    def quick_command(self) -> list[str]:
        """Return the command of a client that lives for seconds."""
        return self._command(*QUICK)

    def _command(self, *java_options: str) -> list[str]:
        home = self.require()
        options = [*java_options, "-Xmx512m", f"{_QUIET}{home / 'logback.xml'}"]
        return [str(java_home() / "bin/java"), *options, "-cp", f"{home}:{home}/jars/*", "CanalDriver"]


class PythonClient(_Client):
    name = "canal_python"
    source = _SOURCES / "canal_driver.py"

    @property
    def made_of(self) -> bytes:
        return " ".join(_PACKAGES).encode()

    def build(self, target: Path, cache: Path, report: Report) -> None:  # noqa: ARG002 - as the others have it
        report(f"installing {' '.join(_PACKAGES)}")
        folder = target / "packages"
        _run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), *_PACKAGES])

    def command(self) -> list[str]:
        # -S: nothing of this environment, which has another protobuf.
        return [sys.executable, "-S", str(self.source), str(self.require() / "packages")]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ServerStartError(f"`{' '.join(command)}` failed:\n{(done.stdout + done.stderr)[-2000:]}")


class Driver:
    """A client as a process: a line goes in, JSON comes out."""

    def __init__(self, command: list[str]) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, encoding="utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, *words: object) -> Any:
        """The answer; an error of the client is a RuntimeError."""
        self.say(*words)
        return self.hear()

    def say(self, *words: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"error": "the client's process has ended"}
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer


JAVA_CLIENT, PYTHON_CLIENT = JavaClient(), PythonClient()
