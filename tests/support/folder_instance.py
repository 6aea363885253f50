"""Instances over folders of log files, and the ids in their blocks."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.config import InstanceSettings
from penstock.instance import Instance
from tests.support.shop_log import PRODUCT


def settings_of(folder: Path | str, **changes: Any) -> InstanceSettings:
    return InstanceSettings.model_validate(
        {"source": {"path": str(folder), "poll_s": 0.01, "missing_file_timeout_s": 0.5}, "start": "earliest"} | changes
    )


def ids_in(block: Any) -> list[int]:
    from penstock.binlog.rows.changes import decode_changes
    from penstock.binlog.rows.fields import arrow_fields_of_table

    batches = decode_changes(block, PRODUCT.name, arrow_fields_of_table(PRODUCT))
    return [row["id"] for batch in batches for row in batch.to_pylist()]


@contextmanager
def running(instance: Instance) -> Iterator[Instance]:
    instance.start()
    try:
        yield instance
    finally:
        instance.stop()


def folder_instance(folder: Path | str, **changes: Any) -> Instance:
    source = {"path": str(folder), "poll_s": 0.01}
    return Instance(InstanceSettings.model_validate({"source": source, "destination": "folder"} | changes))
