"""What `penstock binlog` does, once its options are read."""

import os
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np

from penstock.binlog.events.block import Block
from penstock.cli.binlog_tables import TableOutput, table_files
from penstock.cli.interrupt import undisturbed
from penstock.cli.progress import Progress
from penstock.config import SourceSettings
from penstock.errors import ConfigurationError
from penstock.inspect.changes import ColumnChoice, changes_in
from penstock.inspect.file_log import FileLog
from penstock.inspect.log import Log
from penstock.inspect.place import parse_place
from penstock.inspect.selection import Selection, table_patterns
from penstock.inspect.shapes import Shapes
from penstock.inspect.statistics import Statistics
from penstock.inspect.verify import verify_file
from penstock.model import TableName, TableSchema
from penstock.render import text
from penstock.render.bars import size_text
from penstock.render.flashback import FlashbackLines, Spool
from penstock.render.json_lines import JsonLines
from penstock.render.page import LineFormat, Page, Role, compose
from penstock.render.sql import SqlLines
from penstock.render.statistics import statistics_json, statistics_text
from penstock.render.table_files import Kind, Targets
from penstock.render.terminal import TerminalLines

_LINES = ("table", "json", "sql")
_FILES = ("csv", "arrow", "parquet")


@dataclass(frozen=True, slots=True)
class Request:
    """The options, as they were typed."""

    files: tuple[Path, ...]
    server: SourceSettings | None
    since: str | None
    until: str | None
    follow: bool
    tables: tuple[str, ...]
    columns: tuple[str, ...]
    without: tuple[str, ...]
    limit: int | None
    format: str | None
    output: Path | None
    mode: Literal["show", "stats", "flashback", "verify"]
    has_checks: bool


def run(request: Request) -> int:
    """The exit code."""
    try:
        return _Work(request).run()
    except BrokenPipeError:
        # The reader has seen enough; Python must not try to write the rest at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _ask(server: SourceSettings) -> Callable[[TableName], TableSchema]:
    from penstock.inspect.server_log import ask_server  # noqa: PLC0415 - files need no driver

    return ask_server(server)


def _warn(what: str) -> None:
    print(f"penstock: warning: {what}", file=sys.stderr)


class _Work:
    def __init__(self, request: Request) -> None:
        self._request = request
        self._progress = Progress()
        self._files = tuple(Path("/dev/stdin") if str(path) == "-" else path for path in request.files)
        self._format = self._checked_format()
        self._choice = ColumnChoice(request.columns, request.without)
        now = datetime.now(UTC)
        self._since = parse_place(request.since, now) if request.since else None
        until = parse_place(request.until, now) if request.until else None
        self._selection = Selection(table_patterns(request.tables), self._since, until)
        self._left = request.limit
        self._shapes = Shapes(_ask(request.server) if request.server else None)

    def _checked_format(self) -> str:
        request = self._request
        allowed = {"show": (*_LINES, *_FILES), "stats": ("table", "json"), "flashback": ("sql",), "verify": ()}
        is_terminal = sys.stdout.isatty() and request.output is None
        default = {"show": "table" if is_terminal else "json", "stats": "table", "flashback": "sql", "verify": ""}
        chosen = request.format or default[request.mode]
        if request.format and chosen not in allowed[request.mode]:
            what = f"--{request.mode} " if request.mode != "show" else ""
            known = ", ".join(allowed[request.mode]) or "no --format"
            raise ConfigurationError(f"{what}--format {chosen} is not known: it takes {known}")
        if chosen in {"arrow", "parquet"} and is_terminal:
            raise ConfigurationError(f"{chosen} is not for a terminal: give a file with --output, or a pipe")
        if request.mode == "flashback" and request.columns:
            raise ConfigurationError(
                "--flashback puts back whole rows: --columns would lose the others; leave out what cannot be set,"
                " such as generated columns, with --without"
            )
        if request.follow and (request.mode != "show" or request.files):
            raise ConfigurationError("--follow goes with --host and rows only")
        return chosen

    def run(self) -> int:
        if self._request.mode == "verify":
            return self._verify()
        try:
            {"show": self._show, "stats": self._stats, "flashback": self._flashback}[self._request.mode]()
        finally:
            self._progress.clear()
        self._selection.check()
        return 0

    # -- reading

    def _log(self) -> Log:
        request = self._request
        if self._files:
            return FileLog(self._files, self._since, self._progress_safe_warn, verify=request.has_checks)
        if request.server is None:
            raise ConfigurationError("name log files, or a server with --host")
        if self._since is None and not request.follow:
            raise ConfigurationError(
                "say where to begin with --since (a position, a time, a GTID), or --follow from now on"
            )
        from penstock.inspect.server_log import ServerLog  # noqa: PLC0415 - files need no driver

        return ServerLog(request.server, self._since, follow=request.follow, verify=request.has_checks)

    def _progress_safe_warn(self, what: str) -> None:
        self._progress.clear()
        _warn(what)

    def _picked(self, *, for_counting: bool = False) -> Iterator[Block]:
        log = self._log()
        for block in log:
            part = self._selection.pick(block, for_counting=for_counting)
            if len(part):
                yield part
            if self._selection.is_over or self._left == 0:
                return
            self._progress.show(log.done, log.total)

    def _pages(self, language: LineFormat) -> Iterator[Page]:
        for block in self._picked():
            page = compose(block, changes_in(block, self._choice, self._shapes), language)
            if self._left is not None:
                page = page.first_changes(self._left)
                self._left -= int(np.count_nonzero(page.role == Role.CHANGE))
            yield page

    # -- what to do

    def _show(self) -> None:
        if self._format == "csv" or self._format == "arrow" or self._format == "parquet":  # noqa: PLR1714 - for the type
            self._show_tables(self._format)
            return
        language = self._language()
        with self._opened() as out:
            out.write(language.begin().encode())
            for page in self._pages(language):
                out.write(text.raw_bytes(language.frame(page)))
                if self._request.follow:
                    out.flush()
            out.write(language.end().encode())

    def _language(self) -> LineFormat:
        match self._format:
            case "json":
                return JsonLines()
            case "sql":
                return SqlLines()
            case _:
                is_plain = self._request.output is not None or not sys.stdout.isatty() or "NO_COLOR" in os.environ
                return TerminalLines(colours=not is_plain)

    @contextmanager
    def _opened(self) -> Generator[BinaryIO, None, None]:
        if self._request.output is not None:
            with self._request.output.open("wb") as file:
                yield file
            return
        try:
            yield sys.stdout.buffer
        finally:
            sys.stdout.buffer.flush()

    def _show_tables(self, kind: Kind) -> None:
        targets = Targets(kind, self._request.output, sys.stdout.buffer)
        files = table_files(kind, targets)
        tables = TableOutput(files, self._choice, self._shapes, self._left)
        try:
            for block in self._picked():
                with undisturbed():
                    tables.write(block)
                self._left = tables.left
        finally:
            with undisturbed():
                files.close()
                targets.close()

    def _stats(self) -> None:
        found = Statistics()
        for block in self._picked(for_counting=True):
            found.add(block)
        with self._opened() as out:
            out.write((statistics_json(found) if self._format == "json" else statistics_text(found)).encode())

    def _flashback(self) -> None:
        language = FlashbackLines()
        with Spool() as spool:
            for page in self._pages(language):
                spool.add(text.raw_bytes(language.frame(page)))
            spool.add(language.closing().encode())
            with self._opened() as out:
                out.write(language.begin().encode())
                for part in spool.backwards():
                    out.write(part)
        if language.statements:
            _warn(f"statements that cannot be undone: {language.statements}; comments in the output say which")

    def _verify(self) -> int:
        if not self._files:
            raise ConfigurationError("--verify reads files: name them")
        is_sound = True
        for path in self._files:
            begun = time.perf_counter()
            total = path.stat().st_size
            verdict = verify_file(path, lambda done, total=total: self._progress.show(done, total))
            took = time.perf_counter() - begun
            self._progress.clear()
            sums = "checksums match" if verdict.has_checksums else "no checksums in this file"
            speed = f"{size_text(verdict.bytes / took)}/s"
            print(
                f"{path}: {verdict.events:,} events, {size_text(verdict.bytes)}, {speed}:"
                f" {verdict.problem or f'whole, {sums}'}"
            )
            is_sound &= not verdict.problem
        return 0 if is_sound else 1
