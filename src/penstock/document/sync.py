"""Changes → documents → index, and the first load. Knows neither Spark nor a driver: tables in, operations out."""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from penstock.document.affected import find_changed_keys
from penstock.document.build import DocumentBuilder
from penstock.document.plan import DocumentPlan
from penstock.errors import SinkRejectedError
from penstock.model import TableName
from penstock.search.index import OPERATIONS, SearchIndex, WriteReport

DOCUMENTS_PER_WRITE = 5_000


def apply_changes(
    changes: pa.Table,
    columns: Mapping[TableName, str],
    plan: DocumentPlan,
    builder: DocumentBuilder,
    index: SearchIndex,
) -> int:
    """Write every document that these changes touch in the source's present state, and return how many.

    Each is written with the highest `_seq` that touched it. Applying the same changes again is harmless.
    """
    if not changes.num_rows:
        return 0
    builder.wait_until_visible()
    versions = find_affected_documents(changes, columns, plan, builder)
    ids = list(versions)
    for first in range(0, len(ids), DOCUMENTS_PER_WRITE):
        some = ids[first : first + DOCUMENTS_PER_WRITE]
        present = dict(builder.build_documents(some))
        _write_operations(index, [(str(key), versions[key], present.get(str(key))) for key in some])
    return len(ids)


def find_affected_documents(
    changes: pa.Table, columns: Mapping[TableName, str], plan: DocumentPlan, builder: DocumentBuilder
) -> dict[Any, int]:
    """Return the root ids that the changes touch, with the version each document is to be written with."""
    keys = find_changed_keys(changes, columns, plan.key_columns)
    versions = keys.get(TableName.parse(plan.spec.root.table), {})
    for join in plan.spec.joins.values():
        changed = keys.get(TableName.parse(join.table))
        if not changed:
            continue
        highest = max(changed.values())
        for key in builder.find_roots(join, list(changed)):
            versions[key] = max(versions.get(key, 0), highest)
    return versions


def load_all_documents(
    builder: DocumentBuilder, index: SearchIndex, version: int, progress: Callable[[int], None] = lambda _: None
) -> int:
    """Write every document with `version`, the `_seq` of a position taken before, so that any later change wins."""
    builder.wait_until_visible()
    count = 0
    for page in builder.build_pages():
        _write_operations(index, [(key, version, document) for key, document in page])
        count += len(page)
        progress(count)
    return count


def _write_operations(index: SearchIndex, rows: list[tuple[str, int, str | None]]) -> WriteReport:
    """Write documents and deletes, and return the report."""
    if not rows:
        return WriteReport()
    ids, versions, documents = zip(*rows, strict=True)
    columns = [pa.array(ids, pa.string()), pa.array(versions, pa.int64()), pa.array(documents, pa.string())]
    report = index.write(pa.Table.from_arrays(columns, schema=OPERATIONS))
    if report.rejected:
        first = report.rejected[0]
        raise SinkRejectedError(
            f"the index refused {len(report.rejected)} documents, the first with id {first.id}: {first.reason};"
            " nothing after them was acknowledged, mend the mapping or the data and start again"
        )
    return report
