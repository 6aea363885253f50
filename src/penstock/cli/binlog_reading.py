"""Reads the log that a `penstock binlog` request names: opens it, picks its events, and warns about what they say."""

from collections.abc import Callable, Container, Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.binlog.events.annotation import AnnotationPicker
from penstock.binlog.events.block import Block
from penstock.binlog.events.file_log import FileLog
from penstock.binlog.events.incident import find_incidents
from penstock.binlog.rows.table_changes import ColumnChoice
from penstock.cli.binlog_output import print_warning
from penstock.cli.binlog_request import BinlogRequest, choose_format
from penstock.cli.progress import ProgressLine
from penstock.errors import ConfigurationError
from penstock.inspect.log import BlockSource
from penstock.inspect.log_tables import LogTableCompleter, UnnamedTables
from penstock.inspect.selection import EventSelection, compile_table_patterns
from penstock.inspect.shapes import SchemaLookup
from penstock.model import TableName, TableSchema
from penstock.model.start_point import parse_point

if TYPE_CHECKING:
    from penstock.config import SourceSettings


class RequestedLog:
    """The log of one `penstock binlog` request, with what was picked and met while it was read.

    log = RequestedLog(request)
    for block in log.pick_blocks():
        log.warn_of_incidents(block, range(len(block)))
    """

    def __init__(self, request: BinlogRequest) -> None:
        self.request = request
        self.format = choose_format(request)
        self.files = tuple(Path("/dev/stdin") if str(path) == "-" else path for path in request.files)
        self.choice = ColumnChoice(request.columns, request.without)
        now = datetime.now(UTC)
        self.since = parse_point(request.since, now) if request.since is not None else None
        until = parse_point(request.until, now) if request.until is not None else None
        notes = AnnotationPicker() if request.statements or (request.mode == "show" and self.format == "sql") else None
        self.selection = EventSelection(compile_table_patterns(request.tables), self.since, until, notes)
        self.progress = ProgressLine()
        self.changes_left = request.limit  # None without a limit
        self.has_incidents = False
        self._unnamed = UnnamedTables()
        self._unnamed_warnings: list[str] = []  # as they were last printed
        self.shapes = SchemaLookup(_schema_from(request.server) if request.server else None, self._unnamed)

    def pick_blocks(self, *, for_counting: bool = False) -> Generator[Block, None, None]:
        """Yield the picked blocks of the log with completed table maps, and show the progress."""
        log = self._open()
        tables = LogTableCompleter(self._unnamed, log.earlier)
        for block in log:
            named = block if for_counting else tables.complete(block)
            part = self.selection.pick_events(named, for_counting=for_counting)
            if len(part):
                yield part
            if self.selection.is_over or self.changes_left == 0:
                return
            self.progress.show(log.done, log.total)
            if self.request.follow:
                self.warn_of_unnamed()

    def pick_blocks_ahead(self) -> Generator[Block, None, None]:
        """Yield the picked blocks of log files that will be read again: without progress and without warnings."""
        selection = EventSelection(compile_table_patterns(self.request.tables), self.since, self.selection.until)
        log = FileLog(self.files, self.since, lambda _: None, verify=False)
        tables = LogTableCompleter(UnnamedTables(), log.earlier)
        for block in log:
            yield selection.pick_events(tables.complete(block))
            if selection.is_over:
                return

    def show_warning(self, text: str) -> None:
        """Clear the progress line and print a warning."""
        self.progress.clear()
        print_warning(text)

    def warn_of_unnamed(self) -> None:
        """Warn about tables without column names, once, or when there are others."""
        warnings = self._unnamed.format_warnings(has_server=self.request.server is not None)
        for warning in warnings if warnings != self._unnamed_warnings else ():
            self.show_warning(warning)
        self._unnamed_warnings = warnings

    def warn_of_incidents(self, block: Block, events: Container[int]) -> None:
        """Warn about these incidents of a block: data may be missing, whatever the output shows."""
        for incident in find_incidents(block):
            if incident.event in events:
                self.has_incidents = True
                self.show_warning(str(incident))

    def _open(self) -> BlockSource:
        """Open the files or the server to read from."""
        request = self.request
        if self.files:
            return FileLog(self.files, self.since, self.show_warning, verify=request.has_checks)
        if request.server is None:
            raise ConfigurationError("name log files, or a server with --host")
        if self.since is None and not request.follow:
            raise ConfigurationError(
                "say where to begin with --since (a position, a time, a GTID), or --follow from now on"
            )
        from penstock.source.server_log import ServerLog  # noqa: PLC0415 - files need no driver
        from penstock.source.server_source import ServerSource  # noqa: PLC0415

        server, options = ServerSource(request.server), {"follow": request.follow, "verify": request.has_checks}
        return ServerLog(server, self.since, self.show_warning, **options)


def _schema_from(server: "SourceSettings") -> Callable[[TableName], TableSchema]:
    """Return a function that asks a server for the current schema of a table."""
    from penstock.inspect.server_tables import schema_from_server  # noqa: PLC0415 - files need no driver

    return schema_from_server(server)
