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

from penstock.binlog.events.annotation import AnnotationPicker
from penstock.binlog.events.block import Block
from penstock.binlog.events.file_log import FileLog
from penstock.binlog.events.incident import find_incidents
from penstock.binlog.events.layout import EventType
from penstock.binlog.rows.table_changes import ColumnChoice, decode_table_changes
from penstock.cli.binlog_request import INCIDENT_CODE, BinlogRequest, choose_format
from penstock.cli.ordered_work import work_in_order
from penstock.cli.progress import ProgressLine
from penstock.errors import ConfigurationError
from penstock.inspect.log import BlockSource
from penstock.inspect.log_tables import LogTableCompleter, UnnamedTables
from penstock.inspect.selection import EventSelection, compile_table_patterns
from penstock.inspect.shapes import SchemaLookup
from penstock.model import Position, TableName, TableSchema
from penstock.model.start_point import parse_point
from penstock.render.page import (
    LineContext,
    LineFormat,
    LineGroup,
    LineRole,
    PageText,
    compose_page,
    find_lines_between,
)

if TYPE_CHECKING:
    from penstock.cli.binlog_single import SingleTableCheck
    from penstock.config import SourceSettings
    from penstock.render.table_files import Kind

L = TypeVar("L", bound=LineFormat)


def run_request(request: BinlogRequest) -> int:
    """Run `penstock binlog` as the request says, and return the exit code."""
    if sys.stdout is None:
        raise ConfigurationError("the standard output is closed: open it, even if --to names a file")
    try:
        code = _BinlogCommand(request).run()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough.
        _abandon_stdout()
        return 0
    except OSError as error:
        _abandon_stdout()
        if error.filename is None and error.errno is not None:
            error.filename = str(request.target or "the standard output")
        raise
    return code


def _abandon_stdout() -> None:
    """Replace the standard output, so that Python does not try to write the rest at its exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _schema_from(server: "SourceSettings") -> Callable[[TableName], TableSchema]:
    """Return a function that asks a server for the current schema of a table."""
    from penstock.inspect.server_tables import schema_from_server  # noqa: PLC0415 - files need no driver

    return schema_from_server(server)


def _print_warning(text: str) -> None:
    """Print a warning to stderr."""
    print(f"penstock: warning: {text}", file=sys.stderr)


def _pick_blocks(log: BlockSource, selection: EventSelection) -> Iterator[Block]:
    """Yield the picked events of each block of a log."""
    tables = LogTableCompleter(UnnamedTables(), log.earlier)
    for block in log:
        yield selection.pick_events(tables.complete(block))
        if selection.is_over:
            return


@dataclass(frozen=True, slots=True, eq=False)
class _RenderJob(Generic[L]):
    """A picked block to render, with what rendering needs to know of the blocks before it."""

    block: Block
    line_format: L
    between: Sequence[LineGroup]


def _context_after(lines: PageText, line_format: LineFormat, before: LineContext) -> LineContext:
    """Return the context that the last line of a page leaves; `before` if it has none."""
    page = lines.page
    return line_format.context_after(page, len(page) - 1) if len(page) else before


class _BinlogCommand:
    """Runs one `penstock binlog` request."""

    def __init__(self, request: BinlogRequest) -> None:
        self._request = request
        self._progress = ProgressLine()
        self._files = tuple(Path("/dev/stdin") if str(path) == "-" else path for path in request.files)
        self._format = choose_format(request)
        self._choice = ColumnChoice(request.columns, request.without)
        now = datetime.now(UTC)
        self._since = parse_point(request.since, now) if request.since is not None else None
        until = parse_point(request.until, now) if request.until is not None else None
        notes = AnnotationPicker() if request.statements or (request.mode == "show" and self._format == "sql") else None
        self._selection = EventSelection(compile_table_patterns(request.tables), self._since, until, notes)
        self._left = request.limit
        self._has_incidents = False
        self._unnamed = UnnamedTables()
        self._told_unnamed: list[str] = []
        self._shapes = SchemaLookup(_schema_from(request.server) if request.server else None, self._unnamed)

    def run(self) -> int:
        """Run the request, and return the exit code."""
        if self._request.mode == "verify":
            from penstock.cli.binlog_verify import verify_files  # noqa: PLC0415

            is_json = self._format == "json"
            return verify_files(
                FileLog.checked(self._files), self._progress, self._warn_beside_progress, is_json=is_json
            )
        try:
            {"show": self._write_lines, "stats": self._print_statistics, "flashback": self._write_flashback}[
                self._request.mode
            ]()
        finally:
            self._progress.clear()
            self._warn_of_unnamed()
        self._selection.check_matches()
        if self._selection.matched and self._request.mode != "stats" and self._choice.unmatched_names:
            _print_warning(
                f"--without {', '.join(self._choice.unmatched_names)}: no table that was shown has such a column"
            )
        return INCIDENT_CODE if self._has_incidents else 0

    # -- reading

    def _open_log(self) -> BlockSource:
        """Open the files or the server to read from."""
        request = self._request
        if self._files:
            return FileLog(self._files, self._since, self._warn_beside_progress, verify=request.has_checks)
        if request.server is None:
            raise ConfigurationError("name log files, or a server with --host")
        if self._since is None and not request.follow:
            raise ConfigurationError(
                "say where to begin with --since (a position, a time, a GTID), or --follow from now on"
            )
        from penstock.source.server_log import ServerLog  # noqa: PLC0415 - files need no driver
        from penstock.source.server_source import ServerSource  # noqa: PLC0415

        server, options = ServerSource(request.server), {"follow": request.follow, "verify": request.has_checks}
        return ServerLog(server, self._since, self._warn_beside_progress, **options)

    def _warn_beside_progress(self, text: str) -> None:
        """Clear the progress line and print a warning."""
        self._progress.clear()
        _print_warning(text)

    def _warn_of_unnamed(self) -> None:
        """Warn about tables without column names, once, or when there are others."""
        warnings = self._unnamed.format_warnings(has_server=self._request.server is not None)
        for warning in warnings if warnings != self._told_unnamed else ():
            self._warn_beside_progress(warning)
        self._told_unnamed = warnings

    def _pick_completed_blocks(self, *, for_counting: bool = False) -> Generator[Block, None, None]:
        """Yield the picked blocks of the log with completed table maps, and show the progress."""
        log = self._open_log()
        tables = LogTableCompleter(self._unnamed, log.earlier)
        for block in log:
            named = block if for_counting else tables.complete(block)
            part = self._selection.pick_events(named, for_counting=for_counting)
            if len(part):
                yield part
            if self._selection.is_over or self._left == 0:
                return
            self._progress.show(log.done, log.total)
            if self._request.follow:
                self._warn_of_unnamed()

    def _render_pages(self, line_format: L) -> Iterator[tuple[PageText, L]]:
        """Yield the text of each picked block in order, and the format as it is at that block."""
        with closing(work_in_order(self._prepare_jobs(line_format), self._render_job)) as pages:
            for page, language_there in pages:
                yield self._limit_lines(page), language_there
                del page  # while the next one is waited for
                if self._left == 0:
                    return

    def _prepare_jobs(self, line_format: L) -> Generator[_RenderJob[L], None, None]:
        """Yield the blocks to render, in order, with what depends on the blocks before."""
        for block in self._pick_completed_blocks():
            line_format = line_format.for_block(copy(self._selection.xa))
            yield _RenderJob(block, line_format, find_lines_between(block, line_format))

    def _render_job(self, job: _RenderJob[L]) -> tuple[PageText, L]:
        """Render one block; any thread may do that."""
        changes = decode_table_changes(job.block, self._choice, self._shapes, finds_rows=job.line_format.finds_rows)
        return compose_page(job.block, changes, job.between, job.line_format), job.line_format

    def _limit_lines(self, lines: PageText) -> PageText:
        """Return the lines up to the limit, and warn about what they say."""
        if self._left is not None:
            lines = lines.cut_after_changes(self._left)
            self._left -= int(np.count_nonzero(lines.page.role == LineRole.CHANGE))
        page = lines.page
        self._warn_of_incidents(page.block, page.event[page.role == LineRole.INCIDENT])
        if self._format == "sql":
            self._warn_of_loads(page.block, page.event[page.role == LineRole.STATEMENT])
        return lines

    def _warn_of_loads(self, block: Block, events: NDArray[np.int64]) -> None:
        """Warn about each LOAD DATA among these statements of a block: SQL output cannot load its file again."""
        for event in events[block.column("kind")[events] == EventType.EXECUTE_LOAD_QUERY].tolist():
            position = Position(block.file, int(block.column("position")[event]))
            self._warn_beside_progress(f"{position} a LOAD DATA in statement format: its rows are not in this output")

    def _warn_of_incidents(self, block: Block, events: Container[int]) -> None:
        """Warn about these incidents of a block: data may be missing, whatever the output shows."""
        for incident in find_incidents(block):
            if incident.event in events:
                self._has_incidents = True
                self._warn_beside_progress(str(incident))

    # -- what to do

    def _write_lines(self) -> None:
        """Write the log as lines of text, JSON or SQL."""
        if self._format == "csv" or self._format == "arrow" or self._format == "parquet":  # noqa: PLR1714 - for the type
            self._write_tables(self._format)
            return
        line_format = self._choose_format()
        line_format.shows_passwords = self._request.passwords
        line_format.comments_nameless = self._request.server is not None
        with self._open_output() as out:
            out.write(line_format.write_begin().encode())
            last = LineContext()
            pages = self._render_pages(line_format)
            for lines, line_format in pages:
                for piece in lines.framed_pieces(line_format, last):
                    out.write(piece)
                last = _context_after(lines, line_format, last)
                del lines
                if self._request.follow:
                    out.flush()
            out.write(line_format.write_end(last).encode())

    def _choose_format(self) -> LineFormat:
        """Return the line format that the request names."""
        match self._format:
            case "json":
                from penstock.render.json_lines import JsonLineFormat  # noqa: PLC0415

                return JsonLineFormat(self._selection.xa)
            case "sql":
                from penstock.render.sql import SqlFormat  # noqa: PLC0415

                return SqlFormat(self._selection.xa)
            case _:
                from penstock.render.terminal import TerminalFormat  # noqa: PLC0415

                is_plain = not self._request.is_terminal or "NO_COLOR" in os.environ
                return TerminalFormat(self._selection.xa, colours=not is_plain)

    @contextmanager
    def _open_output(self) -> Generator[BinaryIO, None, None]:
        """Open the output file or the standard output."""
        if self._request.target is not None:
            with self._request.target.open("wb") as file:
                yield file
            return
        try:
            yield sys.stdout.buffer
        finally:
            sys.stdout.buffer.flush()

    def _write_tables(self, kind: "Kind") -> None:
        """Write the log as CSV, Arrow or Parquet."""
        from penstock.cli.binlog_tables import TableWriter, open_table_writer  # noqa: PLC0415
        from penstock.deferred_signals import defer_signals  # noqa: PLC0415
        from penstock.inspect.unsettled import UnsettledTransactions  # noqa: PLC0415
        from penstock.render.table_files import OutputFiles  # noqa: PLC0415

        targets = OutputFiles(kind, self._request.target, sys.stdout.buffer)
        single = None if targets.is_folder or self._left is not None else self._check_single_table(kind)
        files = open_table_writer(kind, targets)
        tables = TableWriter(files, self._choice, self._shapes, self._left)
        unsettled = UnsettledTransactions()
        try:
            for block in self._pick_completed_blocks():
                unsettled.add_block(block, self._selection.xa)
                if single is not None:
                    single.check_block(block)
                with defer_signals():
                    tables.write_block(block)
                self._left = tables.left
                self._warn_of_incidents(block, range(len(block)))
        finally:
            with defer_signals():
                files.close()
                targets.close()
        if str(unsettled):
            self._warn_beside_progress(f"there are rows of {unsettled}; --output json says which")

    def _check_single_table(self, kind: "Kind") -> "SingleTableCheck":
        """Check that the output is one table.

        Files are looked through first, without decoding rows, so that several tables are refused before anything is
        written. What comes from a server or a pipe can be read once, so there each block is checked before it is
        written.
        """
        from penstock.cli.binlog_single import SingleTableCheck  # noqa: PLC0415

        check = SingleTableCheck(kind, self._choice, self._shapes)
        if self._files and all(path.is_file() for path in self._files):
            request = self._request
            selection = EventSelection(compile_table_patterns(request.tables), self._since, self._selection.until)
            log = FileLog(self._files, self._since, lambda _: None, verify=False)
            check.check_log(_pick_blocks(log, selection))
        return check

    def _print_statistics(self) -> None:
        """Print the statistics of the log."""
        from penstock.inspect.statistics import LogStatistics  # noqa: PLC0415
        from penstock.render.statistics import format_statistics, statistics_to_json  # noqa: PLC0415

        statistics = LogStatistics()
        for block in self._pick_completed_blocks(for_counting=True):
            statistics.add_block(block)
            self._warn_of_incidents(block, range(len(block)))
        with self._open_output() as out:
            out.write(
                (statistics_to_json(statistics) if self._format == "json" else format_statistics(statistics)).encode()
            )

    def _write_flashback(self) -> None:
        """Write the SQL that undoes the log."""
        from penstock.render.flashback import FlashbackFormat, ReversedSpool  # noqa: PLC0415

        line_format = FlashbackFormat(self._selection.xa)
        with ReversedSpool() as spool:
            last = LineContext()
            pages = self._render_pages(line_format)
            for lines, line_format in pages:
                for tag, part in line_format.split_by_xa(lines, last):
                    spool.add(tag, part)
                last = _context_after(lines, line_format, last)
            spool.add(None, line_format.write_last(last).encode())
            line_format.check_xa_outcomes()
            with self._open_output() as out:
                out.write(line_format.write_begin().encode())
                for part in spool.read_backwards(line_format.is_undone):
                    out.write(part)
        if line_format.statements:
            _print_warning(
                f"statements that cannot be undone: {line_format.statements}; comments in the output say which"
            )
