"""The core works without Spark, Java and every other optional library; what needs one names the extra to install."""

import subprocess
import sys

import pytest

CORE = (
    "model",
    "config",
    "binlog.events.reader",
    "binlog.rows.changes",
    "schema",
    "source",
    "store",
    "instance",
    "server",
    "client",
    "cli",
)
OPTIONAL = (
    "pyspark",
    "py4j",
    "pandas",
    "tantivy",
    "orjson",
    "urllib3",
    "starlette",
    "uvicorn",
    "kazoo",
    "pika",
    "confluent_kafka",
    "fsspec",
    "deltalake",
)

WITHOUT = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
import importlib.util
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in {OPTIONAL!r} else find_spec(name, package)
"""


def python(code: str, missing: str = WITHOUT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", missing + code], capture_output=True, text=True, check=False)


def test_the_core_imports_without_any_extra() -> None:
    result = python("".join(f"import penstock.{room}\n" for room in CORE))
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("module", "library", "extra"),
    [
        ("spark.source", "pyspark", "spark"),
        ("search.http", "urllib3", "search"),
        ("search.embedded", "tantivy", "embedded"),
        ("document", "orjson", "search"),
        ("demo.page", "uvicorn", "console"),
        ("source.remote_folder", "fsspec", "fsspec"),
    ],
)
def test_what_needs_an_extra_names_it(module: str, library: str, extra: str) -> None:
    result = python(f"import penstock.{module}", f"import sys; sys.modules[{library!r}] = None\n")
    assert result.returncode != 0
    assert "MissingExtraError: " in result.stderr
    assert f"pip install 'penstock[{extra}]'" in result.stderr
