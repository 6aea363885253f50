"""The mirror that a command names: a folder of Parquet files, a Delta table, or a table of another server."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from penstock.binlog.values.column import DEFAULT, DecodeOptions
from penstock.config import SourceSettings
from penstock.errors import ConfigurationError
from penstock.mirror.database_table import DatabaseTable
from penstock.mirror.dataset_mirror import DatasetMirror, is_delta_table, list_delta_files, list_parquet_files
from penstock.mirror.mirror_column import is_text, is_time
from penstock.mirror.row_check import Mirror
from penstock.model import Column, TableName
from penstock.snapshot.table_snapshot import SnapshotOptions

_TEXT_DATES = DecodeOptions(dates="text")  # tells dates that no calendar has from each other and from null
_SCHEMES = ("mysql://", "mariadb://")


def open_mirror(target: str, password: str) -> Mirror:
    """Open the mirror that a text names: mysql://user@host:port/database.table, or a folder. Raises ConfigurationError
    for another text."""
    if target.startswith(_SCHEMES):
        settings, name = parse_table_url(target, password)
        return DatabaseTable(settings, name, SnapshotOptions(connections=1, decode=_TEXT_DATES))
    if is_delta_table(target):
        return DatasetMirror(target, partial(list_delta_files, target))
    return DatasetMirror(target, partial(list_parquet_files, target))


def parse_table_url(url: str, password: str) -> tuple[SourceSettings, TableName]:
    """Return the server and the table of mysql://user@host:port/database.table."""
    parts = urlsplit(url)
    form = "a table of another server is mysql://USER@HOST:PORT/DATABASE.TABLE"
    if parts.password is not None:
        raise ConfigurationError(f"{form}: set its password as PENSTOCK_MIRROR_PASSWORD, not in the address")
    try:
        port = parts.port or 3306
    except ValueError:
        raise ConfigurationError(f"{form}; this one has no such port") from None
    if not parts.hostname or "." not in parts.path:
        raise ConfigurationError(f"{form}, not {url!r}")
    user = unquote(parts.username or "root")
    settings = SourceSettings(host=parts.hostname, port=port, user=user, password=SecretStr(password))
    return settings, TableName.parse(unquote(parts.path[1:]))


def open_source(
    settings: SourceSettings,
    name: TableName,
    mirror: Mirror,
    options: SnapshotOptions,
    chosen: Sequence[str] | None = None,
) -> DatabaseTable:
    """Open a table as it is to be compared with a mirror: all its columns, or the key and the chosen ones."""
    table = DatabaseTable(settings, name, options).table
    columns = table.columns
    if chosen is not None:
        options = replace(options, columns=(*table.identity, *chosen))
        columns = tuple(column for column in columns if column.name in {*table.identity, *chosen})
    return DatabaseTable(settings, name, replace(options, decode=choose_decoding(columns, mirror)))


def choose_decoding(columns: Sequence[Column], mirror: Mirror) -> DecodeOptions:
    """Return how the values of a table are read to be compared with those of a mirror: dates and times as texts where
    the mirror has texts. Raises ConfigurationError for a mirror that has both."""
    times = [column.name for column in columns if is_time(column) and column.name in mirror.schema.names]
    texts = [name for name in times if is_text(mirror.schema.field(name).type)]
    if texts and len(texts) < len(times):
        other = next(name for name in times if name not in texts)
        raise ConfigurationError(
            f"the mirror has {texts[0]} as text and {other} not: dates and times are compared as texts, or none is;"
            " choose the columns with --columns"
        )
    return _TEXT_DATES if texts else DEFAULT
