"""The order of files in a run over several workers: the longest begin first, so that no worker is alone at the end."""

import pytest

# By measured time, the longest first; a file that is not here is short, and its place is random.
LONGEST = (
    "test_capture_scenarios.py",
    "test_cluster.py",
    "test_index_sync.py",
    "test_failover.py",
    "test_demo.py",
    "test_lost_logs.py",
    "test_clients.py",
    "test_benchmarks.py",
    "test_stream_source.py",
    "test_readme_tour.py",
    "test_ensemble.py",
    "test_canal_cluster_clients.py",
    "test_running.py",
    "test_server_cluster.py",
    "test_xa.py",
    "test_binlog_command.py",
    "test_search_http.py",
    "test_capture.py",
    "test_bad_input.py",
    "test_instance_life.py",
    "test_semi_sync.py",
    "test_bounds_check.py",
)


class LongestFirst:
    """A plugin of pytest; it comes after the one that shuffles, and keeps the order of the rest."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> object:
        result = yield
        items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))
        return result
