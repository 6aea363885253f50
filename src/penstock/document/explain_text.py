"""An explained document spec as text, in lines of 100 columns."""

import json
import re
import textwrap
from collections.abc import Iterator

from penstock.document.explain import IndexReport, NodeReport, QueryReport, TouchReport, TransformReport
from penstock.document.query_plan import PlanStep

WIDTH = 100
_CLAUSE = re.compile(r" (?=(?:FROM|JOIN|WHERE|ORDER BY) )")


def write_report(report: IndexReport) -> Iterator[str]:
    """Yield the lines of a report."""
    yield f"Index '{report.index}'"
    yield ""
    yield "Documents"
    yield from _write_tree(report)
    if report.transform is not None:
        yield from _write_transform(report.transform)
    yield ""
    yield "What touches documents"
    for touch in report.touches:
        yield from _write_touch(touch)
    yield ""
    yield from _write_origin(report)
    yield ""
    yield "How documents are read"
    for query in report.queries:
        yield f"  {query.purpose}"
        yield from _write_query(query)
    yield from _write_list("Missing indexes", [f"{text};" for text in report.missing_indexes])
    yield from _write_list("Foreign keys that cascade", _describe_keys(report))
    yield ""
    yield "The index that is created"
    yield from _wrap(json.dumps(report.creation, ensure_ascii=False), "  ")


def _write_tree(report: IndexReport) -> Iterator[str]:
    """Yield the tables of the document as a tree."""
    nodes = report.nodes
    for number, node in enumerate(nodes):
        depth = len(node.path)
        trunk = "".join("│  " if _has_later(nodes, number, level) else "   " for level in range(1, depth))
        is_last = not _has_later(nodes, number, depth)
        branch = "" if not depth else "└─ " if is_last else "├─ "
        below = f"{trunk}{'   ' if is_last else '│  '}" if depth else ""
        below += "│  " if number + 1 < len(nodes) and len(nodes[number + 1].path) > depth else "   "
        head = f"{node.path[-1]}: {node.table}" if depth else node.table
        yield from _wrap(f"{head} ({_describe_join(node)})", f"  {trunk}{branch}", f"  {below}")
        for line in _describe_details(node, report.condition if not depth else ""):
            yield from _wrap(line, f"  {below}")


def _write_transform(transform: TransformReport) -> Iterator[str]:
    """Yield what changes documents before they are indexed."""
    yield ""
    yield "Transform"
    yield from _wrap(f"{transform.python} is called with each document; what it returns is indexed", "  ")
    fields = ", ".join(f"{path} ({kind})" for path, kind in transform.fields.items())
    yield from _wrap(f"adds {fields}" if fields else "adds no field", "  ")


def _has_later(nodes: tuple[NodeReport, ...], number: int, level: int) -> bool:
    """Return whether a sibling of the node's ancestor at this level follows."""
    for node in nodes[number + 1 :]:
        if len(node.path) < level:
            return False
        if len(node.path) == level:
            return True
    return False


def _describe_join(node: NodeReport) -> str:
    """Return how a table is joined."""
    if node.join == "root":
        return "one document per row"
    if node.through:
        return f"array, {' and '.join(node.through_on)} through {node.through}, {' and '.join(node.through_to)}"
    kind = {"one": "object or null", "many": "array", "parent": "not in the document, read for its foreign keys"}
    return f"{kind[node.join]}, {' and '.join(node.on)}"


def _describe_details(node: NodeReport, condition: str) -> Iterator[str]:
    """Yield what else there is to say about a table."""
    if node.fields:
        yield f"fields {', '.join(node.fields)}"
    if condition:
        yield f"where {condition}"
    if node.filter:
        yield f"filter {node.filter}"
    if node.order or node.limit:
        order = f"order {', '.join(node.order)}" if node.order else ""
        yield ", ".join(part for part in (order, f"limit {node.limit}" if node.limit else "") if part)


def _write_touch(touch: TouchReport) -> Iterator[str]:
    """Yield what a changed row of one table touches."""
    yield f"  {touch.table} ({touch.node})"
    uses = "; ".join(f"{name} ({', '.join(texts)})" for name, texts in touch.columns.items())
    yield from _wrap(f"columns    {uses}", "    ", " " * 15)
    yield from _wrap(f"documents  {touch.documents}", "    ", " " * 15)
    if touch.query is not None:
        yield from _write_query(touch.query)
    else:
        yield "    SQL        none is needed"


def _write_origin(report: IndexReport) -> Iterator[str]:
    """Yield what changed documents are built from."""
    yield "What changed documents are built from"
    if not report.read_back_reasons:
        yield from _wrap(
            "the rows in the log; the database is read for the first load, after DDL, and where a row lacks a column",
            "  ",
        )
        return
    yield "  the database, in which they are read back, because"
    for reason in report.read_back_reasons:
        yield from _wrap(reason, "  - ", "    ")


def _write_query(query: QueryReport) -> Iterator[str]:
    """Yield a SELECT with its plan."""
    head = "    SQL        "
    for number, clause in enumerate(_CLAUSE.split(query.sql)):
        yield from _wrap(clause, head if not number else " " * 15, " " * 17)
    if query.example is None:
        yield "    tried      without a row: the table has none, and the plan may be another one later"
    for number, step in enumerate(query.plan):
        yield from _wrap(_describe_step(step), "    plan       " if not number else " " * 15, " " * 17)


def _describe_step(step: PlanStep) -> str:
    """Return how the server reads a table."""
    if not step.access:
        return step.note or step.table
    key = f"key {step.key}" if step.key else "no key"
    mark = "FULL SCAN, " if step.is_full_scan else ""
    return f"{mark}{step.table}: {step.access}, {key}, rows {'?' if step.rows is None else step.rows}"


def _describe_keys(report: IndexReport) -> list[str]:
    """Return the foreign keys as texts."""
    return [
        f"{key.table} ({', '.join(key.columns)}) follows {key.parent} ({', '.join(key.parent_columns)})"
        f" ON {' and '.join(key.on)}: {key.followed}"
        for key in report.foreign_keys
    ]


def _write_list(title: str, items: list[str]) -> Iterator[str]:
    """Yield a title, and items below it."""
    yield ""
    yield f"{title}{'' if items else ': none'}"
    for item in items:
        yield from _wrap(item, "  ", "    ")


def _wrap(text: str, first: str, other: str = "") -> list[str]:
    """Return a text in lines; what has no blank is broken, too, where a line would be too long."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=other or first, break_on_hyphens=False
    ) or [first.rstrip()]
