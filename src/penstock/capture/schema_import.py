"""The first tables of a schema history: read from the live server, and only what is proven.

The catalogue is read now, and the log is followed from an older position. Tables that DDL between the two has changed
are unknown at the start; the snapshot is valid from the position at which it was taken, unless a table was changed
meanwhile. Where the log has full metadata, earlier schemas are not needed: the history then begins at the position of
the snapshot, and only statements that ran meanwhile are looked for. A folder of files has no catalogue: its history
begins empty.
"""

import itertools
import logging
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.capture.schema_tracker import SchemaTracker
from penstock.config import DirectorySettings, InstanceSettings, SourceSettings
from penstock.disk import make_private_folder, remove_abandoned_folders, sync_folder
from penstock.errors import PenstockError
from penstock.model import Position
from penstock.schema.catalogue import Catalogue
from penstock.schema.change import SchemaChange
from penstock.schema.ddl import DdlError, StatementKind, parse_statement
from penstock.schema.ddl.statement import AlterDatabase, CreateDatabase, DropDatabase
from penstock.schema.ddl.table_names import find_changed_tables, find_named_tables
from penstock.schema.dialect import ServerProfile, SqlDialect
from penstock.schema.history import LOCK_FILE, SchemaHistory
from penstock.schema.incomplete import is_incomplete, mark_incomplete
from penstock.schema.live import logs_column_names
from penstock.schema.live_catalogue import read_catalogue
from penstock.schema.log_statements import SchemaStatements
from penstock.source import BinlogSource, connect, current_position, open_source
from penstock.source.connection import translate_errors
from penstock.source.folder_source import FolderSource

log = logging.getLogger(__name__)

_TEMPORARY = "penstock-schema-"  # begins the name of the folder of a history that ends with its process
_UNFINISHED = "unfinished"  # a file beside a history whose first statements are still being read
_PAUSE_S = 0.2
_ATTEMPTS = 2  # at least
_FOLDER_HINT = (
    "a folder of log files has no catalogue to ask: begin before the statements that made the database and the table,"
    " or write the log with binlog_row_metadata = FULL"
)
_SAME_SHAPE = {
    StatementKind.TRUNCATE_TABLE, StatementKind.CREATE_VIEW, StatementKind.DROP_VIEW, StatementKind.DATA,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ImportedSchemas:
    """Table schemas read from a source: those at the position where the history begins; and in `later` those at the
    position where they were read, if the history begins before it."""

    begin: Position
    first: Catalogue
    later: tuple[Position, Catalogue] | None = None


def open_tables(
    settings: InstanceSettings, source: SourceSettings | DirectorySettings, start: Position
) -> SchemaTracker:
    """Open the schema history of the instance's folder, or create it; without a folder it is in a temporary one, which
    a process that is killed leaves for the next one to remove. The log will be followed from `start`, or from a later
    position if the history says so."""
    hint = _FOLDER_HINT if isinstance(source, DirectorySettings) else ""
    if (folder_of_history := _history_folder(settings)) is not None:
        history, later = _open_history(folder_of_history, settings, source, start)
        return SchemaTracker(history, later, hint=hint, destination=settings.destination)
    remove_abandoned_folders(Path(tempfile.gettempdir()), _TEMPORARY, LOCK_FILE)
    folder = tempfile.TemporaryDirectory(prefix=_TEMPORARY)
    try:
        history, later = _open_history(Path(folder.name), settings, source, start)
    except BaseException:
        folder.cleanup()
        raise
    return SchemaTracker(history, later, folder.cleanup, hint=hint, destination=settings.destination)


def open_tables_since(
    settings: InstanceSettings, source: SourceSettings | DirectorySettings, begin: Position, start: Position
) -> SchemaTracker:
    """Open the schema history of the instance. One that is new begins at `begin`, and the DDL of the log from there to
    `start`, where the log will be followed, is read and recorded; a start that was interrupted begins again."""
    folder = _history_folder(settings)
    if folder is not None and (folder / _UNFINISHED).exists():
        shutil.rmtree(folder)
    if has_history(settings) or start <= begin:
        return open_tables(settings, source, start)
    if folder is not None:
        make_private_folder(folder)
        (folder / _UNFINISHED).touch(mode=0o600)
    tables = open_tables(settings, source, begin)
    try:
        record_skipped_statements(tables, source, begin, start, settings)
        if folder is not None:
            (folder / _UNFINISHED).unlink()
            sync_folder(folder)
    except BaseException:
        tables.close()
        raise
    return tables


def has_history(settings: InstanceSettings) -> bool:
    """Return whether the instance has a schema history from an earlier run."""
    folder = _history_folder(settings)
    return folder is not None and folder.is_dir() and any(folder.iterdir())


def _history_folder(settings: InstanceSettings) -> Path | None:
    """Return the folder of the instance's schema history; None when it has no data directory."""
    return None if settings.data_dir is None else settings.data_dir / settings.destination / "schema"


def _open_history(
    folder: Path, settings: InstanceSettings, source: SourceSettings | DirectorySettings, start: Position
) -> tuple[SchemaHistory, tuple[Position, Catalogue] | None]:
    """Return the history, and the tables at a later position if the history lacks some of them until then."""
    read: list[ImportedSchemas] = []

    def import_first() -> tuple[Position, Catalogue]:
        """Import the tables with which a new history begins."""
        imported = import_with_retry(source, start, settings.destination, verify=settings.verify_checksum)
        mark_incomplete(folder, is_so=imported.later is not None)
        read.append(imported)
        return imported.begin, imported.first

    history = SchemaHistory(folder, import_first, destination=settings.destination)
    if read or not is_incomplete(folder):
        return history, read[0].later if read else None
    log.info(
        "re-reading table schemas from the source destination=%s folder=%s reason=the schema history is incomplete",
        settings.destination,
        folder,
    )
    try:
        again = import_with_retry(source, start, settings.destination, verify=settings.verify_checksum)
    except BaseException:
        history.close()
        raise
    return history, again.later or (again.begin, again.first)


def record_skipped_statements(
    tables: SchemaTracker,
    source: SourceSettings | DirectorySettings,
    followed: Position,
    start: Position,
    settings: InstanceSettings,
) -> None:
    """Record the statements of a part of the log that was not followed, for example because the instance was down. Logs
    that name their columns do not need it."""
    if start <= followed or _log_has_column_names(source):
        return
    origin = open_source(source, settings.destination)
    for kind, change in _read_statements(origin, followed, start, tables.server, verify=settings.verify_checksum):
        tables.record(kind, change)


def _log_has_column_names(source: SourceSettings | DirectorySettings) -> bool:
    """Return whether the log of a source names its columns (binlog_row_metadata=FULL)."""
    if isinstance(source, DirectorySettings):
        return False
    with closing(connect(source)) as connection, translate_errors(source), connection.cursor() as cursor:
        return logs_column_names(cursor)


def import_with_retry(
    source: SourceSettings | DirectorySettings, start: Position, destination: str, *, verify: bool = True
) -> ImportedSchemas:
    """Import the tables, and try again when the connection breaks: for as long as one attempt may take, and at least
    once more."""
    deadline = time.monotonic() + open_source(source).start_timeout_s
    for attempt in itertools.count(1):
        try:
            return import_tables(source, start, destination, verify=verify)
        except PenstockError as error:
            if not error.transient or (attempt >= _ATTEMPTS and time.monotonic() > deadline):
                raise
            log.warning(
                "import of table schemas retried destination=%s source=%s reason=%s", destination, source.address, error
            )
            time.sleep(_PAUSE_S)
    raise AssertionError("unreachable")


def import_tables(
    source: SourceSettings | DirectorySettings, start: Position, destination: str, *, verify: bool = True
) -> ImportedSchemas:
    """Read the tables of a source, and return their schemas at `start` and where they were read; only what is proven by
    the log in between."""
    if isinstance(source, DirectorySettings):
        return ImportedSchemas(start, Catalogue(_find_server(FolderSource(source), start.file)))
    with closing(connect(source)) as connection, translate_errors(source), connection.cursor() as cursor:
        before = replace(current_position(connection, source), epoch=start.epoch)
        has_names = logs_column_names(cursor)
        catalogue = read_catalogue(cursor, destination=destination)
        after = replace(current_position(connection, source), epoch=start.epoch)
    looked_at = before if has_names else min(start, before)
    origin = open_source(source, destination)
    statements = list(_read_statements(origin, looked_at, after, catalogue.server, verify=verify))
    proven = _remove_changed(catalogue, [pair for pair in statements if pair[1].position > before])
    log.info(
        "table schemas imported destination=%s source=%s position=%s statements=%d",
        *(destination, source.address, after, len(statements)),
    )
    if has_names or start >= after:
        return ImportedSchemas(max(start, after), proven)
    return ImportedSchemas(start, _remove_changed(catalogue, statements), (after, proven) if statements else None)


def _find_server(origin: FolderSource, file: str) -> ServerProfile:
    """Return the version of the server that wrote the file, or the oldest file if that one is gone."""
    sizes = origin.sizes()
    return ServerProfile.from_version_text(
        origin.read_head_of(file if file in sizes else next(iter(sizes))).server_version
    )


def _read_statements(
    source: BinlogSource, start: Position, end: Position, server: ServerProfile, *, verify: bool
) -> Iterator[tuple[StatementKind, SchemaChange]]:
    """Yield the statements between two positions of the log that change tables."""
    if start >= end:
        return
    statements = SchemaStatements()
    with source.stream(start, verify=verify, lenient=True) as stream:
        for block in stream:
            if block is not None:
                for kind, change in statements.find(block.between(start, end), server):
                    if kind not in _SAME_SHAPE:
                        yield kind, change
            if (block.end if block is not None else stream.position) >= end:
                return


def _remove_changed(catalogue: Catalogue, changes: Iterable[tuple[StatementKind, SchemaChange]]) -> Catalogue:
    """Return the part of the catalogue that these statements have not changed."""
    for kind, change in changes:
        dialect = SqlDialect(catalogue.server, change.session)
        why = f"{change.text} /* at {change.position}, before the tables were read, or meanwhile */"
        names = {
            *find_changed_tables(change.text, kind, dialect, change.database),
            *find_named_tables(change.text, kind, dialect, change.database),
        }
        for name in names:
            catalogue = catalogue.without_table(name, why)
        if not names:
            database = _changed_database(kind, change, dialect)
            catalogue = catalogue.without_database(database) if database else Catalogue(catalogue.server)
    return catalogue


def _changed_database(kind: StatementKind, change: SchemaChange, dialect: SqlDialect) -> str:
    """Return the database that a statement is about; empty where that cannot be told."""
    try:
        statement = parse_statement(change.text, kind, dialect, change.database)
    except DdlError:
        return ""
    return statement.name if isinstance(statement, (AlterDatabase, CreateDatabase, DropDatabase)) else ""
