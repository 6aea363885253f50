"""Thousands of tables into a folder, with few files open and little memory. Needs no server, but some seconds each."""

from pathlib import Path

import pytest

from tests.support.campaign import short_and_long
from tests.support.many_tables import first_column, used_mb, write_tables

MAX_MB = {1_500: 400, 10_000: 600}


@pytest.fixture(scope="module", params=short_and_long(1_500, 10_000))
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    path = tmp_path_factory.mktemp("many") / "binlog.000001"
    write_tables(path, request.param)
    return path, request.param


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["csv", "arrow", "parquet"])
def test_thousands_of_tables(log: tuple[Path, int], tmp_path: Path, kind: str) -> None:
    path, tables = log
    folder = tmp_path / "out"
    assert used_mb(path, folder, kind) < MAX_MB[tables]
    assert len(list(folder.iterdir())) == tables
    for number in (0, 77, tables // 2, tables - 1):
        assert first_column(folder / f"shop.t{number}.{kind}") == [number, tables + number]
