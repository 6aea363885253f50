"""One class name means one thing in the whole package: who reads it anywhere knows which class is meant."""

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[3] / "src" / "penstock"


def test_no_two_classes_share_a_name() -> None:
    defined = defaultdict[str, list[str]](list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                defined[node.name].append(path.relative_to(PACKAGE).as_posix())
    assert len(defined) > 400
    assert not {name: paths for name, paths in defined.items() if len(paths) > 1}
