"""The servers that a benchmark needs, fetched when they are not there."""

from benchmarks._binlog_logs import say
from penstock.testing import cache_folder
from tests.services import SERVICES


def fetch_services(*names: str) -> None:
    """Fetch these servers into the cache, as `make services` does for the tests."""
    for name in names:
        SERVICES[name].fetch(cache_folder(), say)
