"""Tables whose columns neither the log nor its DDL names, for readers that take rows of any table as they come.

Rows of such a table are an error for readers of columns by name. A reader of all tables that match a filter gets them
with the names that the source has for the table now, if it has as many columns of these types, else as `@1`, `@2`, ….
"""

import logging
from contextlib import closing
from dataclasses import replace

from penstock.binlog.events.block import Block
from penstock.binlog.events.table_map import table_name
from penstock.capture.table_map_completion import lacks_column_names
from penstock.config import SourceSettings
from penstock.errors import PenstockError, SchemaError
from penstock.filter import ColumnRules
from penstock.instance.instance import Instance
from penstock.model import TableName
from penstock.schema.complete import complete_table_map
from penstock.schema.live_catalogue import read_catalogue
from penstock.schema.shape import TableDefinition
from penstock.source import connect
from penstock.source.connection import translate_errors

log = logging.getLogger(__name__)


class ColumnNameCompleter:
    """Adds column names to the blocks of one stream, where neither the binlog nor the schema history has them: those
    that the table has in the source now. The source is asked once for each table. For the thread of the stream.

    completer = ColumnNameCompleter(instance)
    blocks = map(completer.complete, instance.read(start, end))
    """

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._columns = ColumnRules.from_settings(instance.settings.filter.columns)
        self._maps: dict[bytes, bytes] = {}  # completed, by what the log has
        self._present: dict[TableName, TableDefinition | SchemaError] = {}

    def complete(self, block: Block) -> Block:
        """Return the block with column names in the table maps that have none, or with @1, @2 and so on; their tables
        are no longer among its `problems`.

        A table with a rule for its columns in the settings stays a problem: rules name columns, and with uncertain
        names a column that must not be delivered could be.
        """
        if not block.problems:
            return block
        tables, problems = dict(block.tables), dict(block.problems)
        for number, problem in block.problems.items():
            body = tables[number]
            name = table_name(body)
            if lacks_column_names(body, block.server_version) and self._columns.find_rule(name) is None:
                tables[number] = self._complete_map(body, block, name, problem)
                del problems[number]
        return replace(block, tables=tables, problems=problems)

    def _complete_map(self, body: bytes, block: Block, name: TableName, problem: str) -> bytes:
        """Return a table map with the names that the source has now, or as it is."""
        if body not in self._maps:
            names = "those of the table in the source now"
            try:
                completed = complete_table_map(body, self._find_present(name), block.server_version)
            except SchemaError as error:
                completed, names = body, f"@1 and so on, because {error}"
            log.warning(
                "column names neither in the binlog (binlog_row_metadata is not FULL) nor in the schema history, rows"
                " delivered with substitute names destination=%s table=%s position=%s names=%s reason=%s",
                *(self._instance.settings.destination, name, block.start, names, problem),
            )
            self._maps[body] = completed
        return self._maps[body]

    def _find_present(self, name: TableName) -> TableDefinition:
        """Return the definition that the source has of a table now; SchemaError when it has none."""
        if name not in self._present:
            try:
                self._present[name] = self._ask_source(name)
            except SchemaError as error:
                self._present[name] = error
            except PenstockError as error:
                if error.transient:  # other parts of the batch may have the names
                    raise
                self._present[name] = SchemaError(str(error))
        definition = self._present[name]
        if isinstance(definition, SchemaError):
            raise definition
        return definition

    def _ask_source(self, name: TableName) -> TableDefinition:
        """Read the definition of a table from the source."""
        source = self._instance.source_log.source
        if not isinstance(source, SourceSettings):
            raise SchemaError("a folder of log files has no tables to ask for")
        with closing(connect(source)) as connection, translate_errors(source), connection.cursor() as cursor:
            return read_catalogue(cursor, [name.schema]).get(name)
