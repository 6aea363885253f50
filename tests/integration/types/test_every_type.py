"""Every column type of every server: what is decoded is what a SELECT shows, and what mysqlbinlog prints.

In every combination of the log's settings, which are in each test's name. All tables are used in so many of them that
any two values of two settings come together with each type.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice

import pytest

from tests.integration.types.comparison import differences, tool_differences
from tests.integration.types.decoding import Images, decoded
from tests.integration.types.setting import FACTS, covering_settings, every_setting
from tests.integration.types.tool import tool_images
from tests.integration.types.workload import Log, Recorder

_SHOWN = 40

# Tables in which it matters which columns an image carries; the others are left out in most settings to save time.
_FEW = (
    "integers", "nulls", "generated", "key_of_two", "key_with_prefix", "key_unique", "key_none", "patched",
    "indexed_expressions", "addresses",
)  # fmt: skip

CASES = [
    pytest.param(
        (name, setting, () if setting in covering_settings(name) else _FEW),
        id=f"{name}-{setting}",
        marks=getattr(pytest.mark, name),
    )
    for name in FACTS
    # MariaDB 11 writes what MariaDB 10 does, but for positions: every two settings together are enough.
    for setting in every_setting(name)
    if name != "mariadb11" or setting in covering_settings(name)
]


@pytest.fixture(scope="module", params=CASES)
def log(request: pytest.FixtureRequest, recorder_of: Callable[[str], Recorder]) -> Log:
    name, setting, tables = request.param
    return recorder_of(name).record(setting, tables)


@pytest.fixture(scope="module")
def decoded_images(log: Log) -> Mapping[str, Images]:
    return decoded(log.path, log.database, log.images)


def test_decoded_values_are_what_a_select_shows(log: Log, decoded_images: Mapping[str, Images]) -> None:
    _assert_none(log, differences(log, decoded_images))


def test_decoded_values_are_what_the_servers_own_tool_prints(
    log: Log, decoded_images: Mapping[str, Images], binlog_tool_of: Callable[[str], list[str]]
) -> None:
    printed = tool_images(binlog_tool_of(log.server), log.path, log.database)
    _assert_none(log, tool_differences(log, decoded_images, printed))


def _assert_none(log: Log, lines: Iterable[str]) -> None:
    """Not the first difference alone: which columns and images differ says what is wrong."""
    lines = iter(lines)
    shown = list(islice(lines, _SHOWN))
    rest = sum(1 for _ in lines)
    assert not shown, "\n".join([f"{log.server} {log.setting}", *shown, f"and {rest} more" if rest else ""])
