"""Writes the reference of document specs into docs/sync.md, from the models of specs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from penstock.document import DocumentFieldSpec, DocumentSpec, JoinSpec, RootSpec
from penstock.document.spec import LinkSpec, TransformSpec
from penstock.search.index import FieldKind

PAGE = Path(__file__).parents[1] / "docs" / "sync.md"
_BEGIN, _END = "<!-- spec: written by tools/make_sync_doc.py -->\n", "<!-- end of spec -->\n"
MODELS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("The file", DocumentSpec),
    ("`root`", RootSpec),
    ("A join, by its name in `joins`", JoinSpec),
    ("`through`", LinkSpec),
    ("A field, by its name in `fields`", DocumentFieldSpec),
    ("`transform`", TransformSpec),
)


def render() -> str:
    """Return the page with the keys of specs as the code has them."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    return f"{before}{_BEGIN}{''.join(_reference())}{_END}{rest.partition(_END)[2]}"


def _reference() -> Iterator[str]:
    """Yield a table for each part of a spec."""
    for title, model in MODELS:
        yield f"\n### {title}\n\n| key | default | |\n|---|---|---|\n"
        for name, field in model.model_fields.items():
            default = "needed" if field.is_required() else _default(field.default)
            text = (field.description or "").replace("|", r"\|")
            yield f"| `{name}` | {default} | {text} |\n"
    yield f"\nTypes of fields: {', '.join(f'`{kind}`' for kind in FieldKind)}.\n\n"


def _default(value: Any) -> str:
    """Return a default as text; empty for none."""
    return f"`{str(value).lower()}`" if isinstance(value, bool) else ""


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
