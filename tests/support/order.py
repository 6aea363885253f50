"""How a run is spread over several workers: the longest files begin first, so that no worker is alone at the end; a
file stays in one worker, whose servers it shares, and so do all tests of Spark."""

from typing import Any

import pytest

# By measured time, the longest first; a file that is not here is short, and its place is random.
LONGEST = (
    "test_benchmarks.py",
    "test_capture_scenarios.py",
    "test_document_shop.py",
    "test_cluster.py",
    "test_index_sync.py",
    "test_failover.py",
    "test_demo.py",
    "test_demo_page.py",
    "test_lost_logs.py",
    "test_clients.py",
    "test_stream_source.py",
    "test_readme_tour.py",
    "test_ensemble.py",
    "test_canal_cluster_clients.py",
    "test_running.py",
    "test_server_cluster.py",
    "test_xa.py",
    "test_canal_values.py",
    "test_snapshot_then_stream.py",
    "test_verify.py",
    "test_binlog_command.py",
    "test_search_http.py",
    "test_capture.py",
    "test_bad_input.py",
    "test_instance_life.py",
    "test_semi_sync.py",
    "test_bounds_check.py",
)


# Two Spark sessions at once on two cores would not start their processes in time.
_ONE_AFTER_THE_OTHER = ("tests/spark/", "tests/e2e/")


def unit_of(node_id: str) -> str:
    """Return the name of what stays in one worker with a test."""
    return "Spark" if node_id.startswith(_ONE_AFTER_THE_OTHER) else node_id.partition("::")[0]


class Distribution:
    """A plugin of pytest; it comes after the one that shuffles, and keeps the order of the rest."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Spread files as `--dist loadfile` does, with the tests of Spark as if they were one file."""
        from xdist.scheduler import LoadFileScheduling

        class Scheduling(LoadFileScheduling):
            def _split_scope(self, nodeid: str) -> str:
                return unit_of(nodeid)

        return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> object:
        result = yield
        items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))
        return result
