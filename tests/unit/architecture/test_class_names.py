"""One class name means one thing in the whole package: who reads it anywhere knows which class is meant."""

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[3] / "src" / "penstock"
ROOMS = {"server", "instance", "config", "cli", "coordinate", "group", "client", "testing", "demo"}
KNOWN = {"Server"}  # a Penstock server, and in `schema` a database server as its DDL is read


def test_no_class_of_these_rooms_shares_its_name() -> None:
    defined = defaultdict[str, list[str]](list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                defined[node.name].append(path.relative_to(PACKAGE).as_posix())
    shared = {
        name: paths
        for name, paths in defined.items()
        if len(paths) > 1 and any(path.partition("/")[0] in ROOMS for path in paths)
    }
    assert len(defined) > 400
    assert not shared.keys() - KNOWN, shared
