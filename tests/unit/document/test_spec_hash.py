"""Two specs have the same hash if they make the same documents."""

from pathlib import Path

from penstock.document import load_spec
from penstock.document.spec_hash import hash_spec

SPEC = """
index: product
root: {table: d.product, fields: [name], joins: {a: {table: d.a, on: {a_id: id}, fields: [b]}}}
"""


def test_comments_do_not_count_and_the_source_of_a_transform_does(tmp_path: Path) -> None:
    def hash_of(text: str) -> str:
        file = tmp_path / "product.yml"
        file.write_text(text)
        return hash_spec(file, load_spec(file))

    assert hash_of(SPEC) == hash_of(f"# a comment\n{SPEC}")
    assert hash_of(SPEC) != hash_of(SPEC.replace("[name]", "[name, stock]"))
    transformed = f"{SPEC}transform: hook.py:change\n"
    (tmp_path / "hook.py").write_text("def change(document):\n    return document\n")
    before = hash_of(transformed)
    (tmp_path / "hook.py").write_text("def change(document):\n    return {**document, 'a': 1}\n")
    assert hash_of(transformed) not in {before, hash_of(SPEC)}
