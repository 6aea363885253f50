"""Writes the table of options into docs/spark.md."""

from pathlib import Path

from penstock.spark.options import options_table

PAGE = Path(__file__).parents[1] / "docs" / "spark.md"
_BEGIN, _END = "<!-- options: written by tools/make_spark_doc.py -->\n", "<!-- end of options -->\n"


def render() -> str:
    """Return the page with the options as the code has them."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    return f"{before}{_BEGIN}{options_table()}{_END}{rest.partition(_END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
