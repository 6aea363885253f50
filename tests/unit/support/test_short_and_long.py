"""Long forms of tests run when they are asked for, and never beside the short ones."""

import pytest

pytest_plugins = ["pytester"]

_TESTS = """
import pytest
from tests.support.campaign import short_and_long

@pytest.mark.parametrize("rounds", short_and_long(2, 50))
def test_both(rounds): print("rounds", rounds)

@pytest.mark.campaign
def test_long_only(): print("rounds many")

def test_plain(): print("rounds none")
"""
_CONFTEST = """
from tests.support.campaign import allow_time, select

def pytest_addoption(parser):
    parser.addoption("--campaign", action="store_true")

def pytest_collection_modifyitems(config, items):
    items[:], left_out = select(items, is_campaign=config.getoption("--campaign"))
    if config.getoption("--campaign"):
        allow_time(items, 30)
"""
_TIMED_TESTS = """
import time
import pytest

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(0.2)]

def test_marked_by_its_module(): time.sleep(0.5)

@pytest.mark.timeout(timeout=0.1)
def test_marked_itself(): time.sleep(0.5)

@pytest.mark.timeout(5000)
def test_longer_than_the_others(request):
    assert request.node.get_closest_marker("timeout").args == (5000,)
"""


@pytest.mark.parametrize(
    ("arguments", "expected"), [((), {"2", "none"}), (("--campaign",), {"50", "many"})], ids=["test", "campaign"]
)
def test_each_run_has_its_forms(pytester: pytest.Pytester, arguments: tuple[str, ...], expected: set[str]) -> None:
    pytester.makepyfile(_TESTS)
    pytester.makeconftest(_CONFTEST)
    pytester.makeini("[pytest]\nmarkers = campaign")
    result = pytester.runpytest_inprocess("-s", "-p", "no:randomly", "-p", "no:xdist", *arguments)
    assert {line.split("rounds ")[1] for line in result.outlines if "rounds " in line} == expected


def test_no_mark_cuts_a_long_form(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(_TIMED_TESTS)
    pytester.makeconftest(_CONFTEST)
    pytester.makeini("[pytest]\nmarkers = campaign")
    result = pytester.runpytest_inprocess("-p", "no:randomly", "-p", "no:xdist", "--campaign")
    result.assert_outcomes(passed=3)
