"""The one place where the tests meet the decoder: a log file → the row images of some tables.

Values come in a form that can be compared exactly: dates and times as microseconds (days for a date32), floats by their
hexadecimal text, decimals by sign, digits and exponent.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.binlog.events.block import Block, table_name
from penstock.binlog.events.file import LogFile
from penstock.binlog.rows.changes import decode_changes
from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.binlog.values.column import DEFAULT, DecodeOptions
from penstock.errors import PenstockError
from penstock.model import TableName, TableSchema


@dataclass(frozen=True, slots=True)
class RowImage:
    """Columns are counted from 0; `values` are those that the image carries, `changed` those that `_changed` names."""

    change: str
    values: dict[int, Any]
    changed: frozenset[int]


@dataclass(slots=True)
class Images:
    """What was decoded of one table."""

    fields: pa.Schema = field(default_factory=lambda: pa.schema([]))
    images: list[RowImage] = field(default_factory=list[RowImage])
    error: PenstockError | None = None
    schema: TableSchema | None = None


def decoded(
    path: Path,
    database: str,
    tables: Collection[str],
    choice: DecodeOptions = DEFAULT,
    catalogue: Callable[[TableName], TableSchema] | None = None,
) -> Mapping[str, Images]:
    """Columns that an image does not carry are not among its values; an error ends the table it belongs to.

    What of a JSON document the log has only changes of counts as not carried.
    """
    choice = replace(choice, partial_json="operations")
    images = {table: Images() for table in tables}
    for block in LogFile(path):
        for number, body in block.tables.items():
            name = table_name(body)
            if name.schema == database and name.table in images and images[name.table].error is None:
                known = catalogue(name) if catalogue else None
                try:
                    _read(block, number, name, choice, known, images[name.table])
                except PenstockError as error:
                    images[name.table].error = error
    return images


def _read(
    block: Block, number: int, name: TableName, choice: DecodeOptions, known: TableSchema | None, into: Images
) -> None:
    if not into.fields:
        schema = block.schema_of(number)
        into.schema = schema.merged_with(known) if known else schema
        into.fields = arrow_fields_of_table(into.schema, choice=choice)
    for batch in decode_changes(block, name, into.fields, choice, known):
        batch.validate(full=True)
        columns = [comparable(batch.column(i)) for i in range(len(into.fields))]
        numbers = {name: i for i, name in enumerate(into.fields.names)}
        absent, changed, changes = (batch.column(name).to_pylist() for name in ("_absent", "_changed", "_change_type"))
        for row, change in enumerate(changes):
            missing = {numbers[name] for name in absent[row] or ()}
            assert all(columns[i][row] is None for i in missing), "what is absent has no value"
            values = {i: column[row] for i, column in enumerate(columns) if i not in missing}
            into.images.append(RowImage(change, values, frozenset(numbers[name] for name in changed[row] or ())))


def comparable(array: pa.Array) -> list[Any]:
    kind = array.type
    if pa.types.is_temporal(kind):
        return array.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64()).to_pylist()
    values = array.to_pylist()
    if pa.types.is_floating(kind):
        return [None if value is None else value.hex() for value in values]
    if pa.types.is_list(kind):
        return [None if value is None else [item.hex() for item in value] for value in values]
    return [value.as_tuple() if isinstance(value, Decimal) else value for value in values]
