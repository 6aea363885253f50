"""Generated pages are what their generator writes."""

from pathlib import Path

from tools import make_settings_doc, make_spark_doc, make_sync_doc, make_types_doc

ROOT = Path(__file__).parents[3]


def test_the_page_of_types_is_up_to_date() -> None:
    assert (ROOT / "docs" / "types.md").read_text(encoding="utf-8") == make_types_doc.render(), (
        "run tools/make_types_doc.py"
    )


def test_the_page_of_settings_is_up_to_date() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert page == make_settings_doc.render(), "run tools/make_settings_doc.py"


def test_the_options_of_spark_are_up_to_date() -> None:
    page = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    assert page == make_spark_doc.render(), "run tools/make_spark_doc.py"
    assert "| `startingPosition` |" in page


def test_the_options_of_snapshots_are_up_to_date() -> None:
    page = (ROOT / "docs" / "snapshot.md").read_text(encoding="utf-8")
    assert page == make_spark_doc.render_snapshot(), "run tools/make_spark_doc.py"
    assert "| `maxConnections` |" in page


def test_the_reference_of_document_specs_is_up_to_date() -> None:
    page = (ROOT / "docs" / "sync.md").read_text(encoding="utf-8")
    assert page == make_sync_doc.render(), "run tools/make_sync_doc.py"
    assert "| `soft_delete` |" in page
