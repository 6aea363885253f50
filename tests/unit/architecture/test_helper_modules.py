"""Modules that tests share, and that are no tests themselves, are in tests/support or tests/twins."""

from pathlib import Path

TESTS = Path(__file__).parents[2]


def test_folders_of_tests_have_only_tests() -> None:
    helpers = [
        str(path.relative_to(TESTS))
        for path in (TESTS / "unit").rglob("*.py")
        if not path.name.startswith("test_") and path.name not in {"conftest.py", "__init__.py"}
    ]
    assert not helpers, f"move to tests/support: {helpers}"
