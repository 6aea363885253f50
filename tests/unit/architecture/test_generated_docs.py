"""Generated pages are what their generator writes."""

from pathlib import Path

from tools.make_types_doc import render

ROOT = Path(__file__).parents[3]


def test_the_page_of_types_is_up_to_date() -> None:
    assert (ROOT / "docs" / "types.md").read_text(encoding="utf-8") == render(), "run tools/make_types_doc.py"
