"""What tests share is in tests/support or tests/twins: a module of tests is imported by nobody."""

import ast
from pathlib import Path

TESTS = Path(__file__).parents[2]


def test_folders_of_tests_have_only_tests() -> None:
    helpers = [
        str(path.relative_to(TESTS))
        for path in (TESTS / "unit").rglob("*.py")
        if not path.name.startswith("test_") and path.name not in {"conftest.py", "__init__.py"}
    ]
    assert not helpers, f"move to tests/support: {helpers}"


def test_no_test_module_is_imported_by_another() -> None:
    imports = [
        f"{path.relative_to(TESTS)}:{node.lineno}: {node.module}"
        for folder in ("unit", "integration", "conformance", "support", "twins")
        for path in sorted((TESTS / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").rpartition(".")[2].startswith("test_")
    ]
    assert not imports, f"move what is shared to tests/support: {imports}"
