"""`penstock.read_binlog`: the changes of one table in log files as an Arrow table."""

import warnings
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from penstock.binlog.events.block import Block
from penstock.binlog.events.file import LogFile
from penstock.binlog.events.file_log import name_files
from penstock.binlog.events.layout import EventType
from penstock.binlog.events.table_map import table_name
from penstock.binlog.rows.changes import decode_changes_at, group_by_table_version
from penstock.binlog.rows.differences import append_names
from penstock.binlog.rows.fields import CHANGE_FIELDS, arrow_fields_of_table, choose_free_names
from penstock.binlog.rows.widening import common_type
from penstock.binlog.values.column import DecodeOptions
from penstock.errors import BinlogWarning, ConfigurationError, SchemaError
from penstock.inspect.log_tables import LogTableCompleter, UnnamedTables
from penstock.model import TableName, TableSchema

Paths = str | PathLike[str] | Iterable[str | PathLike[str]]


def read_binlog(
    path: Paths,
    table: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    dates: Literal["null", "text", "error"] = "null",
    labels: Literal["text", "number"] = "text",
    partial_json: Literal["error", "operations"] = "error",
    known: TableSchema | None = None,
    verify: bool = True,
) -> pa.Table:
    """Return the row changes of `table` (as `database.table`) in log order: its columns, then `_change_type`, `_seq`
    and so on.

    `path` is one file or several, in their order. Without `table` the files must hold rows of one table only. `dates`
    says what a date becomes that no calendar has, `labels` what an ENUM or SET becomes, `known` what the log does not
    say of the table, and `verify` whether checksums are verified. `partial_json` says what a change to a JSON document
    becomes that the log does not have: an error, or null with the operations in `_partial`.

    Without `known`, a log that does not name its columns gets the names, charsets and key from the DDL in these files,
    where that comes before the rows. A table that was altered within the files has the columns of all its versions, in
    the widest of their types; a column that a row did not have yet, or no longer, is null and listed in `_absent`.

    A file that ends inside an event, and a position where the server says that it may have lost events, are warned of.

        >>> penstock.read_binlog("binlog.000007", "shop.product").filter(pc.field("_change_type") == "delete")
    """
    paths = [Path(path)] if isinstance(path, (str, PathLike)) else [Path(origin) for origin in path]
    for name, value, allowed in (
        ("dates", dates, ("null", "text", "error")),
        ("labels", labels, ("text", "number")),
        ("partial_json", partial_json, ("error", "operations")),
    ):
        if value not in allowed:
            raise ConfigurationError(f"{name} is one of {', '.join(allowed)}, not {value!r}")
    choice = DecodeOptions(dates, labels, partial_json=partial_json)
    reading = _TableChangeReader(TableName.parse(table) if table else None, columns, choice, known)
    unnamed = UnnamedTables()
    tables = LogTableCompleter(unnamed)
    for origin, file in zip(paths, name_files(paths), strict=True):
        log = LogFile(origin, name=file, verify=verify)
        for block in log:
            reading.add_block(tables.complete(block) if known is None else block)
        if log.rest:
            _warn_caller(
                f"{log.end} is followed by {log.rest} bytes that are no whole event: {origin} is cut, or being written"
            )
    if not reading.batches:
        missing = f"no rows of {reading.table}" if reading.table else "no rows"
        raise SchemaError(f"there are {missing} in {', '.join(map(str, paths)) or 'no file'}")
    for warning in unnamed.for_table(reading.table).format_warnings(has_server=False):
        _warn_caller(warning)
    return reading.to_table()


class _TableChangeReader:
    """Collects the changes of one table; each batch has the columns of its version of the table."""

    def __init__(
        self, table: TableName | None, columns: Sequence[str] | None, choice: DecodeOptions, known: TableSchema | None
    ) -> None:
        self.table = table
        self.batches: list[pa.RecordBatch] = []
        self._columns, self._choice, self._known = columns, choice, known
        self._is_any = table is None
        self._fields: list[pa.Schema] = []  # of each batch

    def add_block(self, block: Block) -> None:
        """Decode the changes of a block."""
        incidents = np.flatnonzero(block.column("kind") == EventType.INCIDENT)
        for position in block.column("position")[incidents].tolist():
            _warn_caller(f"{block.file}:{position} INCIDENT: the server says that it may have lost events here")
        if self._is_any:
            for name in map(table_name, block.tables.values()):
                self.table = self.table or name
                if name != self.table:
                    raise SchemaError(f"{block.file} holds rows of {self.table} and {name}: say which with table=")
        if self.table is None:
            return
        for events, shape in group_by_table_version(block, self.table, self._known):
            there = {column.name for column in shape.columns}
            fields = arrow_fields_of_table(
                shape, None if self._columns is None else [*there & {*self._columns}], self._choice
            )
            for batch in decode_changes_at(block, events, shape, fields, self._choice):
                self.batches.append(batch)
                self._fields.append(fields)

    def to_table(self) -> pa.Table:
        """Return all changes as one Arrow table."""
        fields = self._merge_schemas()
        unknown = set(self._columns or ()) - {*fields.names}
        if unknown:
            raise SchemaError(f"table {self.table} has no column {', '.join(sorted(unknown))} in these files")
        whole = pa.schema([*fields, *CHANGE_FIELDS])
        batches = [
            batch if own == fields else _fill_absent(batch, own, fields)
            for batch, own in zip(self.batches, self._fields, strict=True)
        ]
        ours = choose_free_names(CHANGE_FIELDS.names, fields.names)
        return pa.Table.from_batches(batches, whole).rename_columns([*fields.names, *ours])

    def _merge_schemas(self) -> pa.Schema:
        """Return the fields of all versions of the table, in the order of the newest."""
        fields: dict[str, pa.Field] = {}
        for version in dict.fromkeys(reversed(self._fields)):
            for field in version:
                known = fields.setdefault(field.name, field)
                kind = common_type(known.type, field.type)
                if kind is None:
                    raise SchemaError(
                        f"column {field.name} of table {self.table} was altered within the files, from {field.type} to"
                        f" {known.type}, and no type holds both: read the files apart, or other columns with columns="
                    )
                fields[field.name] = known.with_type(kind)
        return pa.schema(list(fields.values()))


def _fill_absent(batch: pa.RecordBatch, own: pa.Schema, fields: pa.Schema) -> pa.RecordBatch:
    """Return a batch of an older table version with all fields; columns that it does not have are null and listed as
    absent.
    """
    arrays: list[pa.Array] = []
    for field in fields:
        at = own.get_field_index(field.name)
        arrays.append(batch.column(at).cast(field.type) if at >= 0 else pa.nulls(batch.num_rows, field.type))
    missing = [field.name for field in fields if own.get_field_index(field.name) < 0]
    ours = batch.columns[len(own) :]
    if missing:
        absent = CHANGE_FIELDS.get_field_index("_absent")
        ours[absent] = append_names(ours[absent], missing)
    return pa.RecordBatch.from_arrays([*arrays, *ours], schema=pa.schema([*fields, *CHANGE_FIELDS]))


def _warn_caller(text: str) -> None:
    """Issue a BinlogWarning at the caller of `read_binlog`."""
    warnings.warn(text, BinlogWarning, stacklevel=3)
