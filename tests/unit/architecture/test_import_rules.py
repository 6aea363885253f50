"""The rooms of the package may only look in the agreed directions (docs/architecture.md)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "src" / "penstock"

# Room → rooms it may import. `errors`, `disk`, `backoff`, `local_process` and `deferred_signals` are open to all.
# A room without a rule is a failure.
ALLOWED = {
    "model": set(),
    "config": {"model"},
    "binlog": {"model"},
    "canal": {"model", "binlog"},
    "schema": {"model", "binlog"},
    "filter": {"model", "config", "binlog", "schema"},
    "source": {"model", "config", "binlog", "schema"},
    "snapshot": {"model", "config", "binlog", "schema", "source"},
    "store": {"model", "config", "binlog", "schema"},
    "meta": {"model", "config", "binlog", "schema", "coordinate"},
    "coordinate": {"model", "config"},
    "capture": {"model", "config", "binlog", "schema", "filter", "source", "store", "meta"},
    "instance": {
        "model", "config", "binlog", "schema", "filter", "source", "snapshot", "store", "meta", "coordinate",
        "capture",
    },
    "group": {"model", "config", "binlog", "store", "meta", "capture", "instance"},
    "server": {
        "model", "config", "binlog", "schema", "filter", "source", "snapshot", "store", "meta", "capture", "instance",
        "group", "coordinate", "render", "canal",
    },
    "client": {"model", "binlog", "canal", "coordinate"},
    "inspect": {"model", "config", "binlog", "schema", "source"},
    "render": {"model", "config", "binlog", "schema", "filter", "inspect", "canal"},
    "queue": {"model", "config"},
    "search": {"model", "config"},
    "document": {"model", "config", "binlog", "schema", "snapshot", "render", "search"},
    "mirror": {"model", "config", "binlog", "source", "snapshot", "render"},
    "watch": {"model", "config"},
    "testing": set(),
    "spark": {
        "model", "config", "binlog", "filter", "schema", "source", "snapshot", "client", "render", "document", "search",
        "coordinate", "queue", "watch",
    },
    "console": {"model", "config", "client"},
    "demo": {"model", "config", "source", "snapshot", "server", "client", "document", "search", "spark", "testing"},
    "cli": {
        "model", "config", "binlog", "filter", "source", "inspect", "render", "demo", "server", "spark", "instance",
        "meta", "client", "snapshot", "search", "document", "coordinate", "mirror",
    },
}  # fmt: skip

# Library → the only places that may import it: an optional one lives in its adapter, a heavy one in its room.
ONLY_IN = {
    "pyspark": {"spark"},
    "py4j": {"spark"},
    "kazoo": {"coordinate"},
    "pika": {"queue"},
    "confluent_kafka": {"queue"},
    "tantivy": {"search"},
    "urllib3": {"search"},
    "orjson": {"search", "document"},
    "starlette": {"console", "demo"},
    "uvicorn": {"console", "demo"},
    "numba": {"binlog", "source", "snapshot", "inspect", "render"},
    "google": {"canal"},
    "pymysql": {"source", "testing", "demo"},
    "typer": {"cli"},
    "fsspec": {"source"},
    "deltalake": {"mirror"},
}


def imports_of(source: str, room: str) -> Iterator[tuple[str, int]]:
    """Dotted names that a module imports, wherever in it, relative ones made absolute."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = f"penstock.{room}." if node.level == 1 else "penstock." if node.level else ""
            module = f"{package}{node.module or ''}".rstrip(".")
            yield module, node.lineno
            if module == "penstock":
                yield from ((f"penstock.{alias.name}", node.lineno) for alias in node.names)


def violations(source: str, room: str) -> list[str]:
    messages: list[str] = []
    for name, line in imports_of(source, room):
        top, _, rest = name.partition(".")
        target = rest.partition(".")[0]
        if (
            top == "penstock"
            and target
            and target not in {room, "errors", "disk", "backoff", "local_process", "deferred_signals", "__version__"}
        ):
            if target not in ALLOWED[room]:
                messages.append(f"line {line}: {room} may not import penstock.{target}")
        elif top in ONLY_IN and room not in ONLY_IN[top]:
            messages.append(f"line {line}: only {', '.join(sorted(ONLY_IN[top]))} may import {top}, not {room}")
    return messages


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE)


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_what_its_room_may(path: Path) -> None:
    assert violations(path.read_text(encoding="utf-8"), room_of(path)) == []


def test_every_room_has_a_rule() -> None:
    assert {room_of(path) for path in modules()} <= ALLOWED.keys()


def test_rules_have_no_cycle() -> None:
    done: set[str] = set()
    while len(done) < len(ALLOWED):
        ready = {room for room, allowed in ALLOWED.items() if room not in done and allowed <= done}
        assert ready, f"these rooms import each other: {sorted(ALLOWED.keys() - done)}"
        done |= ready


def test_only_the_tool_and_what_it_prints_know_the_tool() -> None:
    """`inspect` is the `penstock binlog` tool: what others need of a log is in `binlog` and `source`."""
    assert {room for room, allowed in ALLOWED.items() if "inspect" in allowed} == {"render", "cli"}
    canal = (PACKAGE / "render" / "canal").glob("*.py")
    assert not [path.name for path in canal if "penstock.inspect" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("model", "from penstock.binlog.events.block import Block"),
        ("binlog", "import pyspark"),
        ("document", "from penstock.source import connect"),
        ("search", "from penstock import server"),
        ("store", "def late():\n    from penstock.instance import Instance"),
        ("model", "from ..store import memory"),
        ("server", "import kazoo.client"),
        ("capture", "from penstock.inspect.selection import EventSelection"),
    ],
)
def test_a_forbidden_import_is_found(room: str, source: str) -> None:
    assert len(violations(source, room)) == 1
