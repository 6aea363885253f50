"""What `penstock binlog` does, once its options are read.

What one format or mode needs is imported with it: a small log is read in less time than all of them take to load.
"""

import os
import sys
from collections.abc import Callable, Container, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.file_log import FileLog
from penstock.binlog.events.incident import find_incidents
from penstock.binlog.events.layout import EventType
from penstock.binlog.events.note import AnnotationPicker
from penstock.binlog.rows.table_changes import ColumnChoice, decode_table_changes
from penstock.cli.binlog_request import INCIDENT_CODE, BinlogRequest, choose_format
from penstock.cli.ordered_work import work_in_order
from penstock.cli.progress import Progress
from penstock.errors import ConfigurationError
from penstock.inspect.log import Log
from penstock.inspect.log_tables import LogTables, Unnamed
from penstock.inspect.selection import Selection, table_patterns
from penstock.inspect.shapes import Shapes
from penstock.model import Position, TableName, TableSchema
from penstock.model.start_point import parse_point
from penstock.render.page import LineContext, LineFormat, Lines, PageText, Role, compose, find_lines_between

if TYPE_CHECKING:
    from penstock.cli.binlog_single import SingleTable
    from penstock.config import SourceSettings
    from penstock.render.table_files import Kind

L = TypeVar("L", bound=LineFormat)


def run(request: BinlogRequest) -> int:
    """Do what the request asks for and return the exit code."""
    if sys.stdout is None:
        raise ConfigurationError("the standard output is closed: open it, even if --to names a file")
    try:
        code = _Work(request).run()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough.
        _give_up_output()
        return 0
    except OSError as error:
        _give_up_output()
        if error.filename is None and error.errno is not None:
            error.filename = str(request.target or "the standard output")
        raise
    return code


def _give_up_output() -> None:
    """Python must not try to write the rest at its exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _ask(server: "SourceSettings") -> Callable[[TableName], TableSchema]:
    from penstock.inspect.server_tables import ask_server  # noqa: PLC0415 - files need no driver

    return ask_server(server)


def _warn(what: str) -> None:
    print(f"penstock: warning: {what}", file=sys.stderr)


def _picked_of(log: Log, selection: Selection) -> Iterator[Block]:
    tables = LogTables(Unnamed(), log.earlier)
    for block in log:
        yield selection.pick(tables.complete(block))
        if selection.is_over:
            return


@dataclass(frozen=True, slots=True, eq=False)
class _Job(Generic[L]):
    """A picked block to render. `language` and `between` know of the blocks before it what rendering needs."""

    block: Block
    language: L
    between: Sequence[Lines]


def _context_after(lines: PageText, language: LineFormat, before: LineContext) -> LineContext:
    page = lines.page
    return language.context_after(page, len(page) - 1) if len(page) else before


class _Work:
    def __init__(self, request: BinlogRequest) -> None:
        self._request = request
        self._progress = Progress()
        self._files = tuple(Path("/dev/stdin") if str(path) == "-" else path for path in request.files)
        self._format = choose_format(request)
        self._choice = ColumnChoice(request.columns, request.without)
        now = datetime.now(UTC)
        self._since = parse_point(request.since, now) if request.since is not None else None
        until = parse_point(request.until, now) if request.until is not None else None
        notes = AnnotationPicker() if request.statements or (request.mode == "show" and self._format == "sql") else None
        self._selection = Selection(table_patterns(request.tables), self._since, until, notes)
        self._left = request.limit
        self._has_incidents = False
        self._unnamed = Unnamed()
        self._told_unnamed: list[str] = []
        self._shapes = Shapes(_ask(request.server) if request.server else None, self._unnamed)

    def run(self) -> int:
        if self._request.mode == "verify":
            from penstock.cli.binlog_verify import verify_files  # noqa: PLC0415

            is_json = self._format == "json"
            return verify_files(FileLog.checked(self._files), self._progress, self._progress_safe_warn, is_json=is_json)
        try:
            {"show": self._show, "stats": self._stats, "flashback": self._flashback}[self._request.mode]()
        finally:
            self._progress.clear()
            self._tell_unnamed()
        self._selection.check()
        if self._selection.matched and self._request.mode != "stats" and self._choice.unmatched_names:
            _warn(f"--without {', '.join(self._choice.unmatched_names)}: no table that was shown has such a column")
        return INCIDENT_CODE if self._has_incidents else 0

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
        from penstock.source.server_log import ServerLog  # noqa: PLC0415 - files need no driver
        from penstock.source.server_source import ServerSource  # noqa: PLC0415

        server, how = ServerSource(request.server), {"follow": request.follow, "verify": request.has_checks}
        return ServerLog(server, self._since, self._progress_safe_warn, **how)

    def _progress_safe_warn(self, what: str) -> None:
        self._progress.clear()
        _warn(what)

    def _tell_unnamed(self) -> None:
        """Warn about tables without names, once, or when there are others."""
        warnings = self._unnamed.warnings(has_server=self._request.server is not None)
        for warning in warnings if warnings != self._told_unnamed else ():
            self._progress_safe_warn(warning)
        self._told_unnamed = warnings

    def _picked(self, *, for_counting: bool = False) -> Generator[Block, None, None]:
        log = self._log()
        tables = LogTables(self._unnamed, log.earlier)
        for block in log:
            named = block if for_counting else tables.complete(block)
            part = self._selection.pick(named, for_counting=for_counting)
            if len(part):
                yield part
            if self._selection.is_over or self._left == 0:
                return
            self._progress.show(log.done, log.total)
            if self._request.follow:
                self._tell_unnamed()

    def _pages(self, language: L) -> Iterator[tuple[PageText, L]]:
        """Yield the text of each picked block, and the language as it is at that block."""
        with closing(work_in_order(self._jobs(language), self._render)) as pages:
            for page, language_there in pages:
                yield self._limited(page), language_there
                del page  # while the next one is waited for
                if self._left == 0:
                    return

    def _jobs(self, language: L) -> Generator[_Job[L], None, None]:
        for block in self._picked():
            language = language.for_block(copy(self._selection.xa))
            yield _Job(block, language, find_lines_between(block, language))

    def _render(self, job: _Job[L]) -> tuple[PageText, L]:
        changes = decode_table_changes(job.block, self._choice, self._shapes, finds_rows=job.language.finds_rows)
        return compose(job.block, changes, job.between, job.language), job.language

    def _limited(self, lines: PageText) -> PageText:
        """Return the lines up to the limit, and warn about what they say."""
        if self._left is not None:
            lines = lines.first_changes(self._left)
            self._left -= int(np.count_nonzero(lines.page.role == Role.CHANGE))
        page = lines.page
        self._tell_incidents(page.block, page.event[page.role == Role.INCIDENT])
        if self._format == "sql":
            self._tell_loads(page.block, page.event[page.role == Role.STATEMENT])
        return lines

    def _tell_loads(self, block: Block, events: NDArray[np.int64]) -> None:
        """Warn about each LOAD DATA among these statements of a block: SQL output cannot load its file again."""
        for event in events[block.column("kind")[events] == EventType.EXECUTE_LOAD_QUERY].tolist():
            place = Position(block.file, int(block.column("position")[event]))
            self._progress_safe_warn(f"{place} a LOAD DATA in statement format: its rows are not in this output")

    def _tell_incidents(self, block: Block, events: Container[int]) -> None:
        """Warn about these incidents of a block: data may be missing, whatever the output shows of it."""
        for incident in find_incidents(block):
            if incident.event in events:
                self._has_incidents = True
                self._progress_safe_warn(str(incident))

    # -- what to do

    def _show(self) -> None:
        if self._format == "csv" or self._format == "arrow" or self._format == "parquet":  # noqa: PLR1714 - for the type
            self._show_tables(self._format)
            return
        language = self._language()
        language.shows_passwords = self._request.passwords
        language.comments_nameless = self._request.server is not None
        with self._opened() as out:
            out.write(language.begin().encode())
            last = LineContext()
            pages = self._pages(language)
            for lines, language in pages:
                for piece in lines.framed(language, last):
                    out.write(piece)
                last = _context_after(lines, language, last)
                del lines
                if self._request.follow:
                    out.flush()
            out.write(language.end(last).encode())

    def _language(self) -> LineFormat:
        match self._format:
            case "json":
                from penstock.render.json_lines import JsonLines  # noqa: PLC0415

                return JsonLines(self._selection.xa)
            case "sql":
                from penstock.render.sql import SqlLines  # noqa: PLC0415

                return SqlLines(self._selection.xa)
            case _:
                from penstock.render.terminal import TerminalLines  # noqa: PLC0415

                is_plain = not self._request.is_terminal or "NO_COLOR" in os.environ
                return TerminalLines(self._selection.xa, colours=not is_plain)

    @contextmanager
    def _opened(self) -> Generator[BinaryIO, None, None]:
        if self._request.target is not None:
            with self._request.target.open("wb") as file:
                yield file
            return
        try:
            yield sys.stdout.buffer
        finally:
            sys.stdout.buffer.flush()

    def _show_tables(self, kind: "Kind") -> None:
        from penstock.cli.binlog_tables import TableOutput, table_files  # noqa: PLC0415
        from penstock.cli.interrupt import defer_signals  # noqa: PLC0415
        from penstock.inspect.unsettled import Unsettled  # noqa: PLC0415
        from penstock.render.table_files import Targets  # noqa: PLC0415

        targets = Targets(kind, self._request.target, sys.stdout.buffer)
        single = None if targets.is_folder or self._left is not None else self._checked_single(kind)
        files = table_files(kind, targets)
        tables = TableOutput(files, self._choice, self._shapes, self._left)
        unsettled = Unsettled()
        try:
            for block in self._picked():
                unsettled.see(block, self._selection.xa)
                if single is not None:
                    single.check(block)
                with defer_signals():
                    tables.write(block)
                self._left = tables.left
                self._tell_incidents(block, range(len(block)))
        finally:
            with defer_signals():
                files.close()
                targets.close()
        if str(unsettled):
            self._progress_safe_warn(f"there are rows of {unsettled}; --output json says which")

    def _checked_single(self, kind: "Kind") -> "SingleTable":
        """Look through files first, without decoding rows: several tables are refused before anything is written. What
        comes from a server or a pipe can be read once, so there each block is looked at before it is written."""
        from penstock.cli.binlog_single import SingleTable  # noqa: PLC0415

        found = SingleTable(kind, self._choice, self._shapes)
        if self._files and all(path.is_file() for path in self._files):
            request = self._request
            selection = Selection(table_patterns(request.tables), self._since, self._selection.until)
            log = FileLog(self._files, self._since, lambda _: None, verify=False)
            found.check_all(_picked_of(log, selection))
        return found

    def _stats(self) -> None:
        from penstock.inspect.statistics import Statistics  # noqa: PLC0415
        from penstock.render.statistics import statistics_json, statistics_text  # noqa: PLC0415

        found = Statistics()
        for block in self._picked(for_counting=True):
            found.add(block)
            self._tell_incidents(block, range(len(block)))
        with self._opened() as out:
            out.write((statistics_json(found) if self._format == "json" else statistics_text(found)).encode())

    def _flashback(self) -> None:
        from penstock.render.flashback import FlashbackLines, Spool  # noqa: PLC0415

        language = FlashbackLines(self._selection.xa)
        with Spool() as spool:
            last = LineContext()
            pages = self._pages(language)
            for lines, language in pages:
                for tag, part in language.parts(lines, last):
                    spool.add(tag, part)
                last = _context_after(lines, language, last)
            spool.add(None, language.closing(last).encode())
            language.check()
            with self._opened() as out:
                out.write(language.begin().encode())
                for part in spool.backwards(language.is_undone):
                    out.write(part)
        if language.statements:
            _warn(f"statements that cannot be undone: {language.statements}; comments in the output say which")
