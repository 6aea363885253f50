"""A Delta table is known by its log, also where a URI names it."""

from pathlib import Path

from penstock.mirror.dataset_mirror import is_delta_table


def test_a_delta_table_is_known_by_its_path_and_by_its_uri(tmp_path: Path) -> None:
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    (tmp_path / "plain").mkdir()
    for name, is_delta in (("delta", True), ("plain", False), ("missing", False)):
        assert is_delta_table(str(tmp_path / name)) is is_delta
        assert is_delta_table(f"file://{tmp_path / name}") is is_delta
        assert is_delta_table(f"file://{tmp_path / name}/") is is_delta
