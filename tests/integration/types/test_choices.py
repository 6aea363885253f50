"""What a reader may choose: dates that no calendar has as text or as an error, labels as numbers."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from penstock.binlog.values.column import DecodeOptions
from tests.integration.types.column import Kind
from tests.integration.types.decoding import decoded
from tests.integration.types.setting import FACTS, Setting
from tests.integration.types.workload import Recorder

_TABLES = ("moments", "odd_dates", "labels")
_TEMPORAL = {Kind.DATE, Kind.TIME, Kind.DATETIME, Kind.TIMESTAMP}
_LABELLED = {Kind.ENUM, Kind.SET}

servers = pytest.mark.parametrize("name", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in FACTS])


@servers
def test_dates_as_text_and_labels_as_numbers_are_what_a_select_shows(
    name: str, recorder_of: Callable[[str], Recorder]
) -> None:
    log = recorder_of(name).record(Setting(metadata=FACTS[name].metadata[0]), _TABLES)
    images_by_table = decoded(log.path, log.database, _TABLES, DecodeOptions(dates="text", labels="number"))
    compared = 0
    for table in log.tables:
        images = images_by_table[table.name]
        assert images.error is None
        for i, column in enumerate(table.all_columns):
            if column.kind in _TEMPORAL:
                assert images.fields.field(i).type == pa.string()
                expected = [image.row[i][0] for image in log.images[table.name]]
            elif column.kind in _LABELLED:
                numbers = [image.row[i][0] for image in log.images[table.name]]
                expected = [None if number is None else int(number) for number in numbers]
            else:
                continue
            assert [image.values[i] for image in images.images] == expected, f"{table.name}.{column.name}"
            compared += len(expected)
    assert compared > 5000


@servers
def test_a_date_that_no_calendar_has_can_be_an_error(name: str, recorder_of: Callable[[str], Recorder]) -> None:
    log = recorder_of(name).record(Setting(metadata=FACTS[name].metadata[0]), ("moments", "odd_dates"))
    images = decoded(log.path, log.database, ("moments", "odd_dates"), DecodeOptions(dates="error"))
    assert images["moments"].error is None
    assert len(images["moments"].images) == len(log.images["moments"])
    message = str(images["odd_dates"].error)
    column = "date" if FACTS[name].metadata[0] == "FULL" else "@3"
    assert f"odd_dates: column {column} is 0000-00-00" in message
    assert log.path.name in message
