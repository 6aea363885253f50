"""Ten thousand tables into a folder, with few files open and little memory. Needs no server, but half a minute each."""

from pathlib import Path

import pytest

from tests.unit.render.many_tables import first_column, used_mb, write_tables

TABLES = 10_000
MOST_MB = 600


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "binlog.000001"
    write_tables(path, TABLES)
    return path


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["csv", "arrow", "parquet"])
def test_ten_thousand_tables(log: Path, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "out"
    assert used_mb(log, folder, kind) < MOST_MB
    assert len(list(folder.iterdir())) == TABLES
    for number in (0, 77, 5_000, TABLES - 1):
        assert first_column(folder / f"shop.t{number}.{kind}") == [number, TABLES + number]
