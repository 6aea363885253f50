"""On pyspark 4.1 a query can only begin where it may be looked up again after each restart."""

import pytest

from penstock.errors import ConfigurationError
from penstock.spark.options import ReadOptions
from penstock.spark.stream_reader import check_plain_start

_OPTIONS = {"server": "127.0.0.1:1", "table": "shop.t"}


@pytest.mark.parametrize("start", ["snapshot", "time:-10m", "stored"])
def test_a_start_that_means_another_position_each_time_is_refused(start: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"startingPosition {start} needs pyspark 4\.2 or newer"):
        check_plain_start(ReadOptions.of({**_OPTIONS, "startingPosition": start}))


@pytest.mark.parametrize("start", ["", "latest", "earliest", "binlog.000001:4", "gtid:0-1-8", "2026-01-01 00:00:00"])
def test_other_starts_are_accepted(start: str) -> None:
    check_plain_start(ReadOptions.of({**_OPTIONS, "startingPosition": start}))
