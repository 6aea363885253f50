"""A file stays in one worker; so do all tests of Spark, whose sessions would not start in time beside each other."""

import pytest

from tests.support.order import unit_of


@pytest.mark.parametrize(
    ("node_id", "unit"),
    [
        ("tests/spark/test_ledger.py::test_sums[mysql80]", "Spark"),
        ("tests/e2e/test_demo.py::test_once", "Spark"),
        ("tests/unit/spark/test_options.py::test_names", "tests/unit/spark/test_options.py"),
        ("tests/integration/test_running.py::test_a_release", "tests/integration/test_running.py"),
    ],
)
def test_what_stays_together(node_id: str, unit: str) -> None:
    assert unit_of(node_id) == unit
