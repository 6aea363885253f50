"""Decoded images against what a SELECT showed and against what mysqlbinlog printed: every difference as a line."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from tests.integration.types.column import Column, Kind, Table
from tests.integration.types.decoding import Images, RowImage
from tests.integration.types.expectation import expected_value, is_expected_type
from tests.integration.types.tool import ToolImage
from tests.integration.types.tool_value import agrees
from tests.integration.types.workload import Image, Log

_BLOBS = {Kind.JSON, Kind.GEOMETRY, Kind.VECTOR}


def differences(log: Log, decoded_images: Mapping[str, Images]) -> Iterator[str]:
    for table in log.tables:
        for line in _differences(table, log, decoded_images[table.name]):
            yield f"{table.name}: {line}"


def _differences(table: Table, log: Log, decoded_images: Images) -> Iterator[str]:
    expected = log.images[table.name]
    if decoded_images.error is not None:
        yield f"not decoded: {decoded_images.error}"
        return
    columns = table.all_columns
    names = [column.name if log.has_names else f"@{i}" for i, column in enumerate(columns, 1)]
    if decoded_images.fields.names != names:
        yield f"the columns are called {decoded_images.fields.names}, not {names}"
        return
    yield from _type_differences(log, columns, decoded_images.fields)
    changes = [image.change for image in expected]
    if [image.change for image in decoded_images.images] != changes:
        yield f"the changes are {_counted(decoded_images)}, not {dict(Counter(changes))}"
        return
    for number, (image, row) in enumerate(zip(expected, decoded_images.images, strict=True)):
        for i, column in enumerate(columns):
            for line in _value_differences(log, table, i, column, image, row):
                yield f"image {number} ({image.change}) {column.name} {column.ddl[:60]}: {line}"


def _value_differences(
    log: Log, table: Table, i: int, column: Column, image: Image, decoded_images: RowImage
) -> Iterator[str]:
    setting = log.setting
    if i in decoded_images.values:
        value = expected_value(log, column, image.row[i])
        if decoded_images.values[i] != value:
            yield f"{_short(decoded_images.values[i])}, but SELECT shows {_short(value)} {_short(image.row[i])}"
    elif not may_be_absent(log, table, column, image, i):
        yield "absent"
    if image.change != "update_postimage":
        if i in decoded_images.changed:
            yield "called changed without an image before it"
    elif i in image.changed and i not in decoded_images.changed and not is_computed(log, column):
        yield "changed, but not called so"
    elif i in decoded_images.changed - image.changed and setting.image == "FULL" and column.kind is not Kind.JSON:
        # The bytes of a document can change and its text stay.
        yield "called changed, but it is not"


def tool_differences(
    log: Log, decoded_images: Mapping[str, Images], printed: Mapping[str, Sequence[ToolImage]]
) -> Iterator[str]:
    """Between what was decoded and what mysqlbinlog printed, also in which columns an image carries."""
    for table in log.tables:
        name = table.name
        for line in _tool_differences(table, log, decoded_images[name], printed.get(name, ())):
            yield f"{name}: {line}"


def _tool_differences(table: Table, log: Log, decoded_images: Images, printed: Sequence[ToolImage]) -> Iterator[str]:
    if decoded_images.error is not None:
        yield f"not decoded: {decoded_images.error}"
        return
    columns = table.all_columns
    if not log.server.startswith("mariadb") and any(column.kind is Kind.GEOMETRY for column in columns):
        if not any(image.gave_up for image in printed):
            yield "the tool reads GEOMETRY now: compare it"
        return
    changes = [image.change for image in printed]
    if [image.change for image in decoded_images.images] != changes:
        yield f"the changes are {_counted(decoded_images)}, by the tool {dict(Counter(changes))}"
        return
    before: Iterable[int] = ()
    for number, (expected, row, image) in enumerate(
        zip(log.images[table.name], decoded_images.images, printed, strict=True)
    ):
        carried = {i for i, value in image.values.items() if value.is_whole or i in before}
        before = image.values.keys()
        if row.values.keys() != carried:
            yield f"image {number} ({row.change}) carries {sorted(row.values)}, by the tool {sorted(carried)}"
            continue
        for i in carried:
            column, value, ours = columns[i], image.values[i], row.values[i]
            if value.nullable != column.nullable or not agrees(log, column, value, ours, expected.row[i]):
                where = f"image {number} ({row.change}) {column.name} {column.ddl[:60]}"
                yield f"{where}: {_short(ours)}, but the tool prints {_short(value)}"


def _type_differences(log: Log, columns: tuple[Column, ...], fields: pa.Schema) -> Iterator[str]:
    for column, field in zip(columns, fields, strict=True):
        if not is_expected_type(log, column, field.type):
            yield f"{column.name} {column.ddl[:60]} has the type {field.type}"


def may_be_absent(log: Log, table: Table, column: Column, image: Image, number: int) -> bool:
    """The least that an image must carry: what identifies the row, and what the statement has changed."""
    setting = log.setting
    if image.change != "insert" and is_left_out(log, column):
        return True
    is_blob = column.kind in _BLOBS or any(word in column.ddl for word in ("BLOB", "TEXT", "JSON"))
    if setting.image == "FULL" or (setting.image == "NOBLOB" and not is_blob):
        return False
    if image.change == "update_postimage":
        # Differences to a document that the image before does not carry say that it changed, but not to what.
        is_unknown = column.kind is Kind.JSON and setting.partial_json
        return number not in image.changed or is_unknown or is_computed(log, column)
    if image.change == "insert":
        return column.generated or column.name == "counter" or image.row[number][0] is None
    return bool(table.keys) and column.name != "id"


def is_computed(log: Log, column: Column) -> bool:
    """MariaDB leaves out of small images what a reader can compute."""
    return is_left_out(log, column) or (log.setting.image == "MINIMAL" and "VIRTUAL" in column.ddl)


def is_left_out(log: Log, column: Column) -> bool:
    """MariaDB 11 writes generated columns of inserts only, whatever the setting."""
    return log.server == "mariadb11" and column.generated


def _counted(decoded_images: Images) -> dict[str, int]:
    return dict(Counter(image.change for image in decoded_images.images))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 200 else f"{text[:120]} … {text[-60:]} ({len(text)} characters)"
