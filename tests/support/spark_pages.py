"""What Spark's own web pages, and their REST interface, show of a program."""

import urllib.request

from tests.support.spark_cluster import ask_json

_SHOWN = "details=true&planDescription=true&length=10000"


def last_execution(ui: str) -> int:
    """Return the number of the last query that Spark has listed; -1 when there was none."""
    return max((query["id"] for query in ask_json(f"{_rest(ui)}/sql?details=false&length=10000", 60)), default=-1)


def spark_pages(ui: str, *, after_execution: int = -1) -> dict[str, str]:
    """Return the pages by their paths; of single queries those with higher numbers than `after_execution`."""
    rest = _rest(ui).removeprefix(f"{ui}/")
    queries = [
        execution["id"] for execution in ask_json(f"{ui}/{rest}/sql?{_SHOWN}", 60) if execution["id"] > after_execution
    ]
    paths = [f"{rest}/{page}" for page in (f"sql?{_SHOWN}", "jobs", "stages?details=true", "allexecutors")]
    paths += [f"{page}/" for page in ("environment", "SQL", "StreamingQuery", "jobs", "stages", "executors")]
    paths += [f"SQL/execution/?id={number}" for number in queries]
    return {path: read_page(f"{ui}/{path}") for path in paths} | {"environment": read_page(f"{ui}/{rest}/environment")}


def read_page(url: str) -> str:
    """Return the text of a page."""
    with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - ours, on loopback
        return answer.read().decode()


def _rest(ui: str) -> str:
    """Return where the REST interface has the program of these pages."""
    (application,) = ask_json(f"{ui}/api/v1/applications", 60)
    return f"{ui}/api/v1/applications/{application['id']}"
