"""Documents of one table from the row images of a batch: what an index has of them is what reading them back gives."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.document import DocumentGraph, batch_images
from penstock.document import write as write_module
from penstock.document.write import split_operations
from penstock.model import TableName
from penstock.search.index import OPERATIONS
from tests.support.document_shop import ORDERS, batch, change, graph_of, order, statement
from tests.support.memory_sync import MemorySync
from tests.twins.strategy import examples

FIELDS: list[Any] = ["number", "total", "made", "state", {"channel": {"value": "web"}}]
GRAPHS = {
    "plain": graph_of(fields=FIELDS),
    "soft delete": graph_of(fields=FIELDS, soft_delete="is_deleted"),
    "soft delete by a time": graph_of(fields=FIELDS, soft_delete="deleted_at"),
    "where": graph_of(fields=FIELDS, where={"customer_id": [1, 2], "is_deleted": [0, True]}),
    "routing": graph_of(fields=FIELDS, routing="customer_id", soft_delete="is_deleted"),
    "routing by a text": graph_of(fields=FIELDS, routing="state"),
    "no field": graph_of(fields={"kind": {"value": 7}}),
}
COLUMNS = {
    "number": st.text(max_size=5),
    "total": st.one_of(st.none(), st.sampled_from(["0.00", "-12.50", "99999999.99"])),
    "made": st.sampled_from([None, "2024-02-29T10:00:00", "2023-02-29T10:00:00", "0000-00-00T00:00:00"]),
    "state": st.sampled_from([None, "", "open", 'quo"te', "漢字\\"]),
    "is_deleted": st.sampled_from([None, 0, 1, -1]),
    "deleted_at": st.sampled_from([None, "2024-01-01T00:00:00"]),  # zero is tried on servers
    "customer_id": st.sampled_from([None, 1, 2, 3]),
    "note": st.text(max_size=3),
}
Rows = dict[int, dict[str, Any]]


class TwoSyncs:
    """A sync that builds documents from the log, and one over the same rows that reads them back."""

    def __init__(self, graph: DocumentGraph) -> None:
        self.from_log, self.read_back = MemorySync(graph), MemorySync(graph)
        self.read_back.sync._image_reader = None

    def apply(self, changes: pa.Table, rows: Rows) -> int:
        """Apply changes, after which the database has these rows, and return how many documents the log gave."""
        for shop in (self.from_log, self.read_back):
            shop.rows.execute("DELETE FROM shop.orders")
            for row in rows.values():
                columns = ", ".join(row)
                stored = [value.replace("T", " ") if name in _TIMES and value else value for name, value in row.items()]
                shop.rows.insert("orders", stored, columns=f"({columns})")
        expected = self.read_back.sync.apply_changes(changes)
        counts = self.from_log.sync.apply_changes(changes)
        assert (counts.changes, counts.unused, counts.documents) == (
            expected.changes, expected.unused, expected.documents
        )  # fmt: skip
        assert self.from_log.index.entries == self.read_back.index.entries
        assert texts_of(self.from_log) == texts_of(self.read_back)
        return counts.from_log

    def close(self) -> None:
        self.from_log.rows.close()
        self.read_back.rows.close()


_TIMES = {"made", "deleted_at"}


def texts_of(shop: MemorySync) -> dict[tuple[str, str | None], str | None]:
    """Return the text that was written last for each document."""
    return {(row["id"], row["routing"]): row["document"] for write in shop.index.writes for row in write}


@given(st.data(), st.sampled_from(list(GRAPHS)))
@examples(100)
def test_any_batches_leave_the_index_as_reading_back_does(data: st.DataObject, name: str) -> None:
    syncs, rows, sequence = TwoSyncs(GRAPHS[name]), Rows(), 1
    for _ in range(data.draw(st.integers(1, 3))):
        changes: list[dict[str, Any]] = []
        for _ in range(data.draw(st.integers(0, 8))):
            sequence += data.draw(st.integers(0, 1))  # rows of a prepared transaction have one
            changes += change_randomly(data, rows, sequence)
        table = batch(*changes)
        size = data.draw(st.integers(1, 5))
        parts = [table.slice(first, size) for first in range(0, table.num_rows, size)]
        syncs.apply(pa.concat_tables(parts) if parts else table, rows)
    assert not syncs.from_log.rows.statements, "nothing was read"
    syncs.close()


def change_randomly(data: st.DataObject, rows: Rows, sequence: int) -> Iterator[dict[str, Any]]:
    """Change the rows, and yield the change."""
    key = data.draw(st.integers(-2, 3))
    before = rows.pop(key, None)
    if before is not None and data.draw(st.booleans()) and data.draw(st.booleans()):
        yield change(ORDERS, sequence, before=before)
        return
    names = data.draw(st.lists(st.sampled_from(list(COLUMNS)), max_size=3, unique=True))
    after = (before or order(key)) | {name: data.draw(COLUMNS[name]) for name in names}
    if before is not None:
        new = data.draw(st.integers(-2, 3))
        after["id"] = key if new in rows else new
    rows[after["id"]] = after
    yield change(ORDERS, sequence, before, after)


@pytest.fixture
def syncs() -> Iterator[TwoSyncs]:
    made = TwoSyncs(graph_of(fields=FIELDS))
    yield made
    made.close()


def test_the_last_image_of_a_key_wins_whatever_the_order_of_the_batch(syncs: TwoSyncs) -> None:
    changes = [change(ORDERS, number, order(1), order(1, number=f"n{number}")) for number in (10, 12, 11)]
    assert syncs.apply(batch(*changes), {1: order(1, number="n12")}) == 1
    assert syncs.from_log.index.documents["1"]["number"] == "n12"
    assert syncs.from_log.index.versions == {"1": 12}


def test_of_images_with_one_sequence_the_last_in_the_batch_wins(syncs: TwoSyncs) -> None:
    """As the rows of a prepared transaction have them: keys are exchanged between rows, and one is inserted again."""
    changes = [
        change(ORDERS, 10, order(1, number="a"), order(3, number="a")),
        change(ORDERS, 10, order(2, number="b"), order(1, number="b")),
        change(ORDERS, 10, order(3, number="a"), order(2, number="a")),
        change(ORDERS, 10, before=order(4)),
        change(ORDERS, 10, after=order(4, number="new")),
    ]
    rows = {1: order(1, number="b"), 2: order(2, number="a"), 4: order(4, number="new")}
    assert syncs.apply(batch(*changes), rows) == 4
    documents = syncs.from_log.index.documents
    assert {key: document["number"] for key, document in documents.items()} == {"1": "b", "2": "a", "4": "new"}


def test_a_column_that_an_image_does_not_have_leads_to_a_read_of_that_document(syncs: TwoSyncs) -> None:
    """As with noblob images, partial JSON, and a column that was added later."""
    image = order(1, number="new")
    partial = {name: value for name, value in image.items() if name != "total"}
    changes = batch(change(ORDERS, 10, order(1), partial), change(ORDERS, 11, after=order(2)))
    assert syncs.apply(changes, {1: image | {"total": "7.50"}, 2: order(2)}) == 1
    assert syncs.from_log.parts == [[write_module.TouchedDocument((1,), 10)]]
    assert texts_of(syncs.from_log)["1", None] == (
        '{"number":"new","total":7.50,"made":null,"state":"open","channel":"web"}'
    )


def test_a_value_of_another_type_leads_to_a_read(syncs: TwoSyncs) -> None:
    """As an image has it from before the column was modified."""
    for column, value in (("number", 7), ("total", 7.5), ("made", 20240229), ("number", ["x"])):
        changes = batch(change(ORDERS, 10, after=order(1) | {column: value}))
        assert syncs.apply(changes, {1: order(1)}) == 0


def test_a_document_that_is_read_back_is_deleted_where_its_routing_was() -> None:
    syncs = TwoSyncs(graph_of(fields=["number"], routing="customer_id"))
    partial = order(1, customer_id=6)
    del partial["number"]
    changes = batch(
        change(ORDERS, 10, after=order(1, customer_id=5)), change(ORDERS, 11, order(1, customer_id=5), partial)
    )
    assert syncs.apply(changes, {1: order(1, customer_id=6)}) == 0
    assert set(syncs.from_log.index.entries) == {("1", "5"), ("1", "6")}
    syncs.close()


def test_a_batch_with_a_statement_is_read_back(syncs: TwoSyncs) -> None:
    changes = batch(
        change(ORDERS, 10, after=order(1, number="log")),
        statement("ALTER TABLE shop.other ADD x INT", 11, "shop.other"),
    )
    assert syncs.apply(changes, {1: order(1, number="database")}) == 0
    assert syncs.from_log.index.documents["1"]["number"] == "database"


def test_documents_of_a_table_that_is_gone_are_deleted() -> None:
    syncs = TwoSyncs(graph_of(fields=["number"]))
    for shop in (syncs.from_log, syncs.read_back):
        shop.missing = frozenset([ORDERS])
        shop.sync.reload()
    syncs.read_back.sync._image_reader = None
    assert syncs.apply(batch(change(ORDERS, 10, after=order(1))), {}) == 0
    assert syncs.from_log.index.entries == {("1", None): (10, None)}
    syncs.close()


def test_images_without_a_key_are_read_back(syncs: TwoSyncs) -> None:
    counts = syncs.from_log.sync.apply_changes(batch(change(ORDERS, 10, {"id": 1}, {"number": "x"})))
    assert (counts.from_log, counts.documents.deleted) == (0, 1), "the row is not there"


def test_documents_are_built_and_written_in_parts(syncs: TwoSyncs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_images, "DOCUMENTS_PER_PART", 10)
    monkeypatch.setattr(write_module, "DOCUMENTS_PER_WRITE", 4)
    rows = {key: order(key, number=f"n{key}") for key in range(25)}
    changes = batch(*(change(ORDERS, 10 + key, after=row) for key, row in rows.items()))
    assert syncs.apply(changes, rows) == 25
    assert [len(write) for write in syncs.from_log.index.writes] == [4, 4, 2, 4, 4, 2, 4, 1]


def test_changes_of_other_tables_are_none_of_ours(syncs: TwoSyncs) -> None:
    assert syncs.apply(batch(change(TableName("shop", "other"), 10, after={"id": 1})), {}) == 0
    assert syncs.from_log.index.writes == []


def test_what_the_index_refuses_is_recorded_with_its_version(syncs: TwoSyncs) -> None:
    shop = syncs.from_log
    shop.index.refused["2"] = "too long"
    counts = shop.sync.apply_changes(batch(*(change(ORDERS, 10 + key, after=order(key)) for key in (1, 2))))
    assert counts.documents.rejected == 1
    assert shop.outcomes == [({"1": 11, "2": 12}, ["2"])]


def test_the_operations_of_one_document_stay_together() -> None:
    ids = ["a", "a", "a", "b", "c", "c", "d"]
    columns: dict[str, Any] = {"id": ids, "version": [1] * 7, "document": [None] * 7, "routing": list("1231122")}
    operations = pa.table({name: columns[name] for name in OPERATIONS.names}, schema=OPERATIONS)
    parts = [part.column("id").to_pylist() for part in split_operations(operations, 2)]
    assert parts == [["a", "a", "a"], ["b", "c", "c"], ["d"]]


def test_texts_are_those_of_the_image() -> None:
    """What JSON may write in several ways stays as the image has it."""
    shop = MemorySync(graph_of(fields=["number", "note"]))
    image = json.dumps(order(1, number="ü/é", note="\t"))
    changes = batch(change(ORDERS, 10, after=order(1)))
    column = changes.schema.get_field_index("after")
    shop.sync.apply_changes(changes.set_column(column, changes.schema.field(column), pa.array([image])))
    assert shop.index.writes[0][0]["document"] == '{"number":"\\u00fc/\\u00e9","note":"\\t"}'
    shop.rows.close()
