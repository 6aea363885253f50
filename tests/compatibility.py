"""`python -m tests.compatibility [VERSION…]`: the contract tests of the Spark source on other releases of pyspark.

Each release is installed once into the cache of the test services, beside this environment, and found before the one of
this environment.
"""

import os
import subprocess
import sys
from pathlib import Path

from penstock.testing import build_once, cache_folder

VERSIONS = ("4.1.4", "4.3.0")
_TESTS = "tests/spark/test_contract.py"
_SPARKS_OWN = "ignore::pytest.PytestUnraisableExceptionWarning"  # pyspark 4.1 leaves sockets open after a collect


def install(version: str) -> Path:
    """Return the folder with a release of pyspark, installed now if it is not there."""

    def build(target: Path) -> None:
        command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(target), f"pyspark=={version}"]
        subprocess.run(command, check=True)

    return build_once(cache_folder() / f"pyspark-{version}", build, print)


def run(version: str) -> int:
    """Run the tests on one release, and return the exit code."""
    print(f"pyspark {version}", flush=True)
    path = os.pathsep.join([str(install(version)), *filter(None, [os.environ.get("PYTHONPATH")])])
    script = (
        f"import pyspark, pytest, sys; assert pyspark.__version__ == {version!r}; sys.exit(pytest.main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, _TESTS, "-p", "no:cacheprovider", "-W", _SPARKS_OWN]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=False).returncode


if __name__ == "__main__":
    codes = [run(version) for version in sys.argv[1:] or VERSIONS]
    sys.exit(any(codes))
