"""Each benchmark runs to its end, prints its figures as one last line of JSON, and cannot hang."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.__main__ import TINY_LIMIT_S, BenchmarkTimeoutError, names, time_limit

_ROOT = Path(__file__).parents[2]
# What others read from a run; a tiny one has three tables instead of 100, 1,000 and 10,000.
_FIGURES = {
    "build": {"full_sync_ratio_bulk", "documents_per_s", "verify_rows_per_s", "repair_documents_per_s", "peak_mib"},
    "index": {
        "latency_p50_ms",
        "latency_p99_ms",
        "embedded_latency_p50_ms",
        "fanout_10k_s",
        "changes_per_s_single",
        "changes_per_s_joined",
        "ratio_bulk_single",
        "driver_peak_mib",
    },
    "server": {"java_client_rows_per_s", "java_client_from_start_rows_per_s", "latency_p50_ms", "failover_kill_s"},
    "snapshot": {"rows_per_s", "ratio_jdbc_1", "ratio_jdbc_n", "ratio_pymysql", "peak_mib"},
    "spark": {
        "ratio_spark_ceiling",
        "rows_per_s",
        "latency_p50_ms",
        "latency_p99_ms",
        "low_latency_p50_ms",
        "idle_cpu_percent",
        "cpu_ratio_64_parts",
        "cpu_ratio_100_tables",
    },
    "tables": {"ratio_3_tables", "flight_ratio_3_tables", "cpu_ratio_3_tables", "rows_per_s_3_tables"},
}


@pytest.mark.timeout(2 * TINY_LIMIT_S)
@pytest.mark.parametrize("name", names())
def test_a_tiny_run_ends_with_its_figures(name: str) -> None:
    command = [sys.executable, "-m", "benchmarks", "--tiny", name]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=1.5 * TINY_LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures.pop("benchmark") == name
    assert figures, "there are figures"
    assert _FIGURES.get(name, set()) <= figures.keys()


def test_a_benchmark_that_does_not_end_is_ended_with_words() -> None:
    with pytest.raises(BenchmarkTimeoutError, match=r"'slow' did not end within 0\.1 s"), time_limit("slow", 0.1):
        time.sleep(60)


def test_a_benchmark_that_is_not_there_is_refused() -> None:
    command = [sys.executable, "-m", "benchmarks", "nothing"]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no benchmark 'nothing'; choose from: binlog, build, capture," in done.stderr
