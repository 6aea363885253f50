"""Short and long forms of one test: `make test` runs the short one, `make campaign` the long one."""

from typing import Any

import pytest


def short_and_long(short: Any, long: Any) -> list[Any]:
    """Return two values for `pytest.mark.parametrize`, of which the second is for campaigns only."""
    return [pytest.param(short, id=str(short)), pytest.param(long, id=str(long), marks=pytest.mark.campaign)]


def select(items: list[pytest.Item], *, is_campaign: bool) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Split collected tests into those that this run executes and those that it leaves out."""
    chosen = [item for item in items if (item.get_closest_marker("campaign") is not None) == is_campaign]
    left_out = [item for item in items if (item.get_closest_marker("campaign") is not None) != is_campaign]
    return chosen, left_out


def allow_time(items: list[pytest.Item], least_s: float) -> None:
    """Give each test at least this time: pytest-timeout prefers the mark of a test, made for its short form, to what
    the command line says."""
    for item in items:
        mark = item.get_closest_marker("timeout")
        given = next(iter((*mark.args, *mark.kwargs.values()))) if mark is not None else least_s
        item.add_marker(pytest.mark.timeout(max(least_s, given)), append=False)
