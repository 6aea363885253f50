"""The tables as a server has them now, for logs that do not say how they look."""

from collections.abc import Callable
from contextlib import closing

from penstock.config import SourceSettings
from penstock.model import TableName, TableSchema
from penstock.schema import read_live_schema
from penstock.source import connect
from penstock.source.connection import translate_errors


def schema_from_server(settings: SourceSettings) -> Callable[[TableName], TableSchema]:
    """Return a function that asks a server for the current schema of a table."""

    def load_schema(table: TableName) -> TableSchema:
        """Return the current schema of a table."""
        with closing(connect(settings)) as connection, translate_errors(settings), connection.cursor() as cursor:
            return read_live_schema(cursor, table)

    return load_schema
