"""Writes docs/types.md from the one table of types, so that it cannot say anything else."""

from pathlib import Path

from penstock.binlog.values import column

HEAD = """# Column types

Made by `tools/make_types_doc.py` from `binlog/values/column.py`. The Spark type follows from the Arrow type:
unsigned integers become the next wider signed type, 64 bits `decimal(20,0)`; decimals beyond 38 digits become text.

"""


def render() -> str:
    text = (column.__doc__ or "").partition("\n\n")[2]
    return HEAD + text.rstrip() + "\n"


if __name__ == "__main__":
    Path("docs/types.md").write_text(render(), encoding="utf-8")
