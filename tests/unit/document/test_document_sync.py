"""Changes into an index: versions, deletes and parts of bounded size."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from _pytest.logging import LogCaptureFixture
from hypothesis import given
from hypothesis import strategies as st

from penstock.document import DocumentSync, LocalWriter, TouchedDocument
from penstock.document import sync as sync_module
from penstock.document import write as write_module
from penstock.errors import SinkRejectedError
from penstock.model import Sequence, TableName
from penstock.search.index import Rejection
from tests.support.document_shop import (
    CHANGES,
    CUSTOMER,
    CUSTOMER_JOIN,
    LINE,
    LINES_JOIN,
    ORDERS,
    TAG,
    TAGS_JOIN,
    batch,
    change,
    graph_of,
    order,
    statement,
)
from tests.support.memory_sync import MemorySync

JOINS = {"customer": CUSTOMER_JOIN, "lines": LINES_JOIN, "tags": TAGS_JOIN}


@pytest.fixture
def shop() -> Iterator[MemorySync]:
    made = MemorySync(graph_of(JOINS, where="state IS NULL OR state <> 'draft'"))
    yield made
    made.rows.close()


def test_documents_are_written_with_the_highest_sequence_that_touched_them(shop: MemorySync) -> None:
    shop.insert_orders(1, 2, customer=5)
    shop.insert_orders(3, customer=6)
    shop.rows.insert("customer", (5, "Ann", "Porto", 1), (6, "Bob", "Lyon", 1))
    counts = shop.sync.apply_changes(
        batch(
            change(ORDERS, 10, after=order(1)),
            change(ORDERS, 12, order(1), order(1, number="x")),
            change(CUSTOMER, 11, {"id": 5, "name": "a"}, {"id": 5, "name": "Ann"}),
        )
    )
    assert shop.index.versions == {"1": 12, "2": 11}
    assert shop.index.documents["2"]["customer"] == {"name": "Ann", "city": "Porto", "country": None}
    assert (counts.changes, counts.unused, counts.documents.written, counts.documents.total) == (3, 0, 2, 2)


def test_images_without_a_column_that_documents_depend_on_now_are_read_whole(shop: MemorySync) -> None:
    shop.insert_orders(1)
    line = {"order_id": 1, "position": 1, "quantity": 2, "product_id": 1}
    narrow, whole = ({name: line[name] for name in ("position", "quantity")}, line)
    assert shop.sync.apply_changes(batch(change(LINE, 10, after=narrow))).documents.total == 0, "the ALTER is to come"
    loads = shop.loads
    counts = shop.sync.apply_changes(
        batch(change(LINE, 10, after=narrow)), lambda: batch(change(LINE, 10, after=whole))
    )
    assert (counts.documents.written, shop.index.versions) == (1, {"1": 10})
    assert shop.loads == loads + 1


def test_rows_that_nobody_can_place_have_all_documents_compared(shop: MemorySync, caplog: LogCaptureFixture) -> None:
    """As rows of a table below the root are logged with binlog_row_image=MINIMAL."""
    shop.insert_orders(1, 2)
    shop.sync.load_all(5)
    minimal = {**change(LINE, 10, {"position": 1}, {"quantity": 2}), "_absent": ["order_id", "product_id"]}
    with caplog.at_level("WARNING"):
        counts = shop.sync.apply_changes(batch(minimal, change(ORDERS, 12, after=order(2))))
    assert shop.index.versions == {"1": 10, "2": 12}
    assert counts.documents.written == 3
    assert "without the column order_id" in caplog.text
    assert "all documents are compared with the source index=orders" in caplog.text


def test_each_document_is_built_once_however_many_changes_touched_it(shop: MemorySync) -> None:
    shop.insert_orders(1, customer=5)
    changes = [change(ORDERS, number, order(1), order(1, number=f"{number}")) for number in range(10, 50)]
    changes += [change(LINE, 60, after={"order_id": 1, "position": 1, "quantity": 1, "product_id": 1})]
    shop.sync.apply_changes(batch(*changes, change(CUSTOMER, 55, after={"id": 5})))
    assert shop.parts == [[TouchedDocument((1,), 60)]]


def test_rows_that_are_gone_or_hidden_are_deleted_with_their_version(shop: MemorySync) -> None:
    shop.insert_orders(1, 2)
    shop.rows.execute("UPDATE shop.orders SET state = 'draft' WHERE id = 1")
    changes = batch(*(change(ORDERS, 6 + key, before=order(key)) for key in (1, 2, 3)))
    counts = shop.sync.apply_changes(changes)
    assert shop.index.entries["1", None] == (7, None)
    assert shop.index.entries["3", None] == (9, None)
    assert set(shop.index.documents) == {"2"}
    assert (counts.documents.written, counts.documents.deleted) == (1, 2)


def test_a_row_that_matches_again_returns(shop: MemorySync) -> None:
    shop.insert_orders(1)
    for sequence, state in ((10, "draft"), (11, "open"), (12, "draft"), (13, "open")):
        shop.rows.execute(f"UPDATE shop.orders SET state = '{state}'")
        shop.sync.apply_changes(batch(change(ORDERS, sequence, order(1, state="?"), order(1, state=state))))
        assert set(shop.index.documents) == ({"1"} if state == "open" else set())


def test_a_changed_key_moves_the_document(shop: MemorySync) -> None:
    shop.insert_orders(2)
    shop.index.entries["1", None] = 5, {}
    shop.sync.apply_changes(batch(change(ORDERS, 10, order(1), order(2))))
    assert shop.index.entries["1", None] == (10, None)
    assert set(shop.index.documents) == {"2"}


def test_a_child_that_moves_touches_both_parents(shop: MemorySync) -> None:
    shop.insert_orders(1, 2)
    shop.rows.insert("order_line", (2, 1, 9, 7))
    line = {"order_id": 1, "position": 1, "quantity": 9, "product_id": 7}
    shop.sync.apply_changes(batch(change(LINE, 10, line, line | {"order_id": 2})))
    assert shop.index.documents["1"]["lines"] == []
    assert shop.index.documents["2"]["lines"] == [{"quantity": 9, "product": None}]
    assert not any("n1" in sql for sql in shop.rows.statements), "integers name the orders without a lookup"


def test_every_table_of_the_graph_leads_to_its_documents(shop: MemorySync) -> None:
    shop.insert_orders(1, customer=5)
    shop.insert_orders(2)
    shop.rows.insert("customer", (5, "Ann", "Porto", 1))
    shop.rows.insert("order_line", (1, 1, 9, 7))
    shop.rows.insert("order_tag", (1, 3))
    for sequence, (name, image) in enumerate(
        [
            ("customer", {"id": 5}),
            ("country", {"id": 1}),
            ("order_line", {"order_id": 1, "product_id": 7}),
            ("product", {"id": 7}),
            ("tag", {"id": 3}),
            ("order_tag", {"order_id": 1, "tag_id": 3}),
        ],
        start=10,
    ):
        shop.sync.apply_changes(batch(change(TableName("shop", name), sequence, after=image)))
        assert shop.index.versions == {"1": sequence}, name


def test_changes_that_touch_nothing_ask_nothing(shop: MemorySync) -> None:
    shop.insert_orders(1)
    counts = shop.sync.apply_changes(batch(change(ORDERS, 10, order(1), order(1, note="x"))))
    assert (counts.changes, counts.unused, counts.documents.total) == (1, 1, 0)
    assert shop.sync.apply_changes(CHANGES.empty_table()).changes == 0
    assert (shop.rows.statements, shop.rows.views, shop.index.writes, shop.loads) == ([], 0, [], 1)


def test_a_newer_version_in_the_index_stays(shop: MemorySync) -> None:
    shop.insert_orders(1)
    shop.index.entries["1", None] = 50, {"number": "newer"}
    counts = shop.sync.apply_changes(batch(change(ORDERS, 10, after=order(1))))
    assert shop.index.documents["1"] == {"number": "newer"}
    assert (counts.documents.stale, counts.documents.total) == (1, 1)


def test_a_refused_document_is_reported_and_stops_no_other(shop: MemorySync) -> None:
    shop.insert_orders(1, 2, 3)
    shop.index.refused["2"] = "bad date"
    counts = shop.sync.apply_changes(batch(*(change(ORDERS, 10, after=order(key)) for key in (1, 2, 3))))
    assert set(shop.index.documents) == {"1", "3"}
    (rejection,) = shop.rejections
    assert counts.documents.rejected == 1
    assert isinstance(rejection, Rejection)
    assert (rejection.id, rejection.reason, rejection.version) == ("2", "bad date", 10)
    assert shop.outcomes == [({"1": 10, "2": 10, "3": 10}, ["2"])]


def test_without_a_place_for_them_a_refused_document_is_an_error(shop: MemorySync) -> None:
    shop.insert_orders(1)
    shop.index.refused["1"] = "bad date"
    rows, index = shop.rows, shop.index
    strict = DocumentSync(shop.load, rows, index, lambda builder: LocalWriter(builder, rows, index))  # type: ignore[arg-type]
    with pytest.raises(SinkRejectedError, match="id 1: bad date"):
        strict.apply_changes(batch(change(ORDERS, 7, after=order(1))))
    with pytest.raises(SinkRejectedError, match="id 1: bad date"):
        strict.load_all(7)


def test_deletes_and_loads_are_outcomes_too(shop: MemorySync) -> None:
    shop.insert_orders(1, 2)
    shop.sync.load_all(5)
    shop.rows.execute("DELETE FROM shop.orders WHERE id = 2")
    shop.sync.apply_changes(batch(change(ORDERS, 10, before=order(2))))
    shop.sync.rebuild(20)
    assert shop.outcomes[:3] == [({"1": 5, "2": 5}, []), ({"2": 10}, []), ({"1": 20}, [])]


def test_a_change_that_touches_more_than_fits_is_followed_in_parts(
    shop: MemorySync, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync_module, "MOST_COLLECTED", 10)
    monkeypatch.setattr(write_module, "DOCUMENTS_PER_WRITE", 4)
    shop.insert_orders(*range(1, 36), customer=5)
    shop.rows.insert("customer", (5, "Ann", "Porto", 1))
    counts = shop.sync.apply_changes(batch(change(CUSTOMER, 10, after={"id": 5}), change(ORDERS, 20, after=order(1))))
    assert counts.documents.written == len(shop.index.documents) == 35
    assert {name for name, version in shop.index.versions.items() if version == 20} == {"1"}
    assert len(shop.parts) > 2
    assert all(len(part) < 10 + 3 for part in shop.parts), "the last rows of a page come whole"
    assert all(len(write) <= 4 for write in shop.index.writes)


def test_many_values_are_looked_up_in_parts_with_versions_not_too_low(
    shop: MemorySync, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync_module, "KEYS_PER_LOOKUP", 3)
    for key in range(1, 11):
        shop.insert_orders(key, customer=100 + key)
    shop.sync.apply_changes(batch(*(change(CUSTOMER, 100 - key, after={"id": 100 + key}) for key in range(1, 11))))
    lookups = [sql for sql in shop.rows.statements if "n1" in sql]
    assert len(lookups) == 4
    assert set(shop.index.versions) == {str(key) for key in range(1, 11)}
    for name, version in shop.index.versions.items():
        assert 100 - int(name) <= version <= 99, "no older than the change, no newer than the batch"
    assert len(set(shop.index.versions.values())) == 4


def test_each_read_of_a_batch_is_one_moment(shop: MemorySync) -> None:
    shop.insert_orders(1, customer=5)
    shop.rows.insert("customer", (5, "Ann", "Porto", 1))
    shop.sync.apply_changes(batch(change(CUSTOMER, 10, after={"id": 5})))
    assert shop.rows.views == 2, "one for the lookup, one for the documents with all that is joined"


def test_the_first_load_reads_every_page_and_later_changes_win(
    shop: MemorySync, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync_module, "DOCUMENTS_PER_PAGE", 10)
    shop.insert_orders(*range(1, 26))
    shop.index.entries["7", None] = 50, {"number": "newer"}
    seen: list[int] = []
    counts = shop.sync.load_all(3, seen.append)
    assert (counts.written, counts.stale) == (24, 1)
    assert seen == [10, 20, 25]
    assert shop.index.documents["7"] == {"number": "newer"}
    assert shop.index.versions["8"] == 3


def test_a_changed_routing_is_a_delete_and_a_document() -> None:
    shop = MemorySync(graph_of(routing="customer_id"))
    shop.insert_orders(1, customer=7)
    shop.insert_orders(2, customer=8)
    shop.sync.apply_changes(
        batch(
            change(ORDERS, 10, order(1, customer_id=5), order(1, customer_id=6)),
            change(ORDERS, 11, order(1, customer_id=6), order(1, customer_id=7)),
            change(ORDERS, 12, after=order(2, customer_id=8)),
            change(ORDERS, 13, before=order(3, customer_id=9)),
        )
    )
    shop.rows.close()
    assert {name: version for name, (version, document) in shop.index.entries.items() if document} == {
        ("1", "7"): 11,
        ("2", "8"): 12,
    }
    assert {name for name, (_, document) in shop.index.entries.items() if document is None} == {
        ("1", "5"),
        ("1", "6"),
        ("3", "9"),
    }


@pytest.mark.parametrize(("before", "after"), [(None, ""), ("", None)])
def test_an_empty_routing_is_none(before: str | None, after: str | None) -> None:
    shop = MemorySync(graph_of(routing="number"))
    shop.rows.insert("orders", (1, after, None), columns="(id, number, customer_id)")
    shop.sync.apply_changes(batch(change(ORDERS, 10, order(1, number=before), order(1, number=after))))
    shop.rows.close()
    assert {name: version for name, (version, document) in shop.index.entries.items() if document} == {("1", None): 10}
    assert len(shop.index.entries) == 1


def test_ids_of_composite_keys_are_the_same_for_documents_and_deletes(shop: MemorySync) -> None:
    key, other = ("a:b", 1), ("%", 2)
    built = write_module.BuiltDocuments([key], ["a%3Ab:1"], pa.array(["{}"]), None)
    operations = write_module.make_operations([TouchedDocument(key, 7), TouchedDocument(other, 8)], built)
    assert operations.to_pylist() == [
        {"id": "a%3Ab:1", "version": 7, "document": "{}", "routing": None},
        {"id": "%25:2", "version": 8, "document": None, "routing": None},
    ]


@given(st.data())
def test_replaying_any_suffix_of_batches_changes_nothing(data: st.DataObject) -> None:
    """A crash repeats the last batch, or several: the index ends the same."""
    shop = MemorySync(graph_of({"customer": CUSTOMER_JOIN, "tags": TAGS_JOIN}))
    batches: list[pa.Table] = []
    for sequence in range(1, data.draw(st.integers(2, 8))):
        key = data.draw(st.integers(1, 3))
        match data.draw(st.sampled_from(["order", "gone", "customer", "truncate", "tag"])):
            case "order":
                shop.rows.execute(f"DELETE FROM shop.orders WHERE id = {key}")
                shop.insert_orders(key, customer=key, number=f"n{sequence}-")
                batches.append(batch(change(ORDERS, sequence, after=order(key))))
            case "gone":
                shop.rows.execute(f"DELETE FROM shop.orders WHERE id = {key}")
                batches.append(batch(change(ORDERS, sequence, before=order(key))))
            case "customer":
                shop.rows.execute(f"DELETE FROM shop.customer WHERE id = {key}")
                shop.rows.insert("customer", (key, f"c{sequence}", "x", 1))
                batches.append(batch(change(CUSTOMER, sequence, after={"id": key})))
            case "tag":
                shop.rows.insert("order_tag", (key, 1))
                batches.append(batch(change(TAG, sequence, after={"id": 1, "name": "x"})))
            case _:
                shop.rows.execute("DELETE FROM shop.orders")
                batches.append(batch(statement("TRUNCATE orders", sequence)))
        shop.sync.apply_changes(batches[-1])
    before = dict(shop.index.documents)
    for changes in batches[data.draw(st.integers(0, len(batches))) :]:
        shop.sync.apply_changes(changes)
    assert shop.index.documents == before
    shop.rows.close()


def test_the_epoch_of_versions_is_claimed_before_they_are_written(shop: MemorySync) -> None:
    shop.insert_orders(1)
    versions = [int(Sequence(epoch, 1, 4)) for epoch in (2, 2, 3)]
    for version in versions:
        shop.sync.apply_changes(batch(change(ORDERS, version, after=order(1))))
    assert shop.index.epochs == [2, 3]
    assert shop.index.versions == {"1": versions[-1]}
