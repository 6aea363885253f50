"""Writes the tables of options into docs/spark.md and docs/snapshot.md."""

from pathlib import Path

from penstock.spark.options import options_table
from penstock.spark.snapshot_options import snapshot_options_table

_DOCS = Path(__file__).parents[1] / "docs"
PAGE, SNAPSHOT_PAGE = _DOCS / "spark.md", _DOCS / "snapshot.md"
_BEGIN, _END = "<!-- options: written by tools/make_spark_doc.py -->\n", "<!-- end of options -->\n"
_SNAPSHOT_BEGIN = "<!-- snapshot options: written by tools/make_spark_doc.py -->\n"
_SNAPSHOT_END = "<!-- end of snapshot options -->\n"


def render() -> str:
    """Return the page of changes with the options as the code has them."""
    return _replace(PAGE, _BEGIN, options_table(), _END)


def render_snapshot() -> str:
    """Return the page of snapshots with the options as the code has them."""
    return _replace(SNAPSHOT_PAGE, _SNAPSHOT_BEGIN, snapshot_options_table(), _SNAPSHOT_END)


def _replace(page: Path, begin: str, table: str, end: str) -> str:
    """Return a page with another table between two marks."""
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    return f"{before}{begin}{table}{end}{rest.partition(end)[2]}"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    SNAPSHOT_PAGE.write_text(render_snapshot(), encoding="utf-8")
