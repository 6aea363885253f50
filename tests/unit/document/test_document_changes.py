"""Which keys a batch of changes touches: both images count, and columns that no document uses do not."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.document import CHANGE_COLUMNS, ChangeReader, DocumentGraph
from penstock.document.changes import TableStatement, TouchedKeys
from penstock.errors import SchemaError
from penstock.model import TableName
from tests.support.document_shop import (
    CHANGES,
    CUSTOMER,
    CUSTOMER_JOIN,
    LINE,
    LINES_JOIN,
    ORDER_TAG,
    ORDERS,
    PRODUCT,
    TAG,
    TAGS_JOIN,
    batch,
    change,
    graph_of,
    order,
    statement,
)

JOINS = {"customer": CUSTOMER_JOIN, "lines": LINES_JOIN, "tags": TAGS_JOIN}


def read(graph: DocumentGraph, changes: pa.Table) -> TouchedKeys:
    assert tuple(changes.column_names) == CHANGE_COLUMNS
    return ChangeReader(graph).read_changes(changes)


def looked_up(graph: DocumentGraph, touched: TouchedKeys) -> dict[str, dict[object, int]]:
    """Return the values to look up, by the table and the columns that they are of."""
    lookups = ChangeReader(graph).lookups
    return {
        f"{lookups[number].table.table}.{','.join(column.name for column in lookups[number].columns)}": dict(values)
        for number, values in touched.lookups.items()
    }


def test_every_kind_of_change_of_a_root_row_touches_its_document() -> None:
    graph = graph_of()
    touched = read(
        graph,
        batch(
            change(ORDERS, 10, after=order(1)),
            change(ORDERS, 11, order(2), order(2, number="new")),
            change(ORDERS, 12, before=order(3)),
        ),
    )
    assert touched.roots == {(1,): 10, (2,): 11, (3,): 12}
    assert (touched.changes, touched.unused, touched.lookups, touched.statements) == (3, 0, {}, [])


def test_a_changed_key_touches_the_old_and_the_new_document() -> None:
    touched = read(graph_of(), batch(change(ORDERS, 10, order(1), order(2))))
    assert touched.roots == {(1,): 10, (2,): 10}


def test_the_highest_sequence_wins_whatever_the_order() -> None:
    graph = graph_of({"customer": CUSTOMER_JOIN})
    numbers = (10, 12, 11)
    orders = [change(ORDERS, number, order(1), order(1, number=f"N{number}")) for number in numbers]
    customers = [change(CUSTOMER, number + 10, after={"id": 5}) for number in numbers]
    touched = read(graph, batch(*orders, *customers))
    assert touched.roots == {(1,): 12}
    assert looked_up(graph, touched) == {"customer.id": {(5,): 22}}


def test_rows_of_joined_tables_are_looked_up_by_what_joins_them() -> None:
    graph = graph_of(JOINS)
    line = {"order_id": 7, "position": 1, "quantity": 2, "product_id": 4}
    touched = read(
        graph,
        batch(
            change(CUSTOMER, 10, {"id": 5, "name": "a"}, {"id": 5, "name": "b"}),
            change(LINE, 11, line, line | {"order_id": 8}),
            change(PRODUCT, 12, after={"id": 4, "name": "p"}),
            change(ORDER_TAG, 13, before={"order_id": 7, "tag_id": 3}),
            change(TAG, 14, {"id": 3, "name": "t"}, {"id": 3, "name": "u"}),
        ),
    )
    assert touched.roots == {}
    assert looked_up(graph, touched) == {
        "customer.id": {(5,): 10},
        "order_line.order_id": {(7,): 11, (8,): 11},
        "product.id": {(4,): 12},
        "order_tag.order_id": {(7,): 13},
        "tag.id": {(3,): 14},
    }


def test_a_table_that_is_root_and_joined_touches_both_ways() -> None:
    graph = graph_of({"parent": {"table": "shop.orders", "on": {"parent_id": "id"}, "fields": ["number"]}})
    touched = read(graph, batch(change(ORDERS, 10, order(1), order(1, number="x"))))
    assert touched.roots == {(1,): 10}
    assert looked_up(graph, touched) == {"orders.id": {(1,): 10}}


def test_null_joins_nothing() -> None:
    graph = graph_of({"next": {"table": "shop.orders", "many": True, "on": {"id": "parent_id"}, "fields": ["number"]}})
    touched = read(graph, batch(change(ORDERS, 10, order(1, parent_id=None), order(1, parent_id=9))))
    assert looked_up(graph, touched) == {"orders.parent_id": {(9,): 10}}


def test_updates_of_columns_that_no_document_uses_cause_no_work() -> None:
    graph = graph_of(JOINS, where="total > 0")
    customer = {"id": 5, "name": "a", "city": "b", "country_id": 1}
    touched = read(
        graph,
        batch(
            change(ORDERS, 10, order(1), order(1, note="x")),
            change(ORDERS, 11, order(2), order(2, note="x", total="1.00")),
            change(ORDERS, 12, order(3), order(3), changed=["note", "parent_id"]),
            change(ORDERS, 13, after=order(4, note="x")),
            change(ORDERS, 14, before=order(5)),
            change(CUSTOMER, 15, customer, customer | {"city": "c"}),
            change(LINE, 16, {"order_id": 1, "position": 1}, {"order_id": 1, "position": 1}, ["weight"]),
        ),
    )
    assert set(touched.roots) == {(2,), (4,), (5,)}
    assert looked_up(graph, touched) == {"customer.id": {(5,): 15}}
    assert (touched.changes, touched.unused) == (7, 3)


def test_an_update_that_changed_nothing_is_not_used() -> None:
    touched = read(graph_of(), batch(change(ORDERS, 10, order(1), order(1))))
    assert (touched.roots, touched.changes, touched.unused) == ({}, 1, 1)


def test_changes_of_other_tables_are_none_of_ours() -> None:
    touched = read(graph_of(), batch(change(TableName("shop", "other"), 10, after={"id": 1})))
    assert (touched.roots, touched.changes, touched.unused) == ({}, 0, 0)


def test_the_routings_that_rows_had_are_collected() -> None:
    graph = graph_of(routing="customer_id")
    touched = read(
        graph,
        batch(
            change(ORDERS, 10, order(1, customer_id=5), order(1, customer_id=6)),
            change(ORDERS, 11, order(1, customer_id=6), order(1, customer_id=7)),
            change(ORDERS, 12, before=order(2, customer_id=None)),
        ),
    )
    assert touched.routings == {(1,): {"5", "6", "7"}, (2,): {None}}
    assert set(touched.roots) == {(1,), (2,)}


def test_statements_come_with_their_table_and_sequence() -> None:
    touched = read(
        graph_of(), batch(statement("TRUNCATE TABLE orders", 10), statement("DROP DATABASE shop", 11, "shop"))
    )
    assert touched.statements == [
        TableStatement("shop.orders", "TRUNCATE TABLE orders", 10),
        TableStatement("shop", "DROP DATABASE shop", 11),
    ]
    assert (touched.changes, touched.roots) == (0, {})


def test_what_an_image_after_an_update_does_not_have_is_that_of_the_image_before() -> None:
    """As rows are logged with binlog_row_image=MINIMAL."""
    graph = graph_of({"customer": CUSTOMER_JOIN})
    assert read(graph, batch(change(ORDERS, 10, {"id": 1}, {"number": "x"}))).roots == {(1,): 10}


def test_an_image_without_the_column_that_finds_documents_is_refused() -> None:
    graph = graph_of({"customer": CUSTOMER_JOIN})
    with pytest.raises(SchemaError, match=r"rows of shop.orders without the column id.*binlog_row_image is not FULL"):
        read(graph, batch(change(ORDERS, 10, {"total": 1}, {"number": "x"})))
    lines = graph_of({"lines": LINES_JOIN})
    with pytest.raises(SchemaError, match=r"rows of shop.order_line without the column order_id"):
        read(lines, batch(change(LINE, 10, after={"quantity": 1})))
    routed = graph_of(routing="customer_id")
    with pytest.raises(SchemaError, match="without the column customer_id"):
        read(routed, batch(change(ORDERS, 10, after={"id": 1, "number": "x"})))


def test_a_batch_of_nothing_touches_nothing() -> None:
    touched = read(graph_of(JOINS), CHANGES.empty_table())
    assert (touched.roots, touched.lookups, touched.changes) == ({}, {}, 0)


@given(
    st.lists(
        st.tuples(
            st.integers(1, 4), st.integers(1, 4), st.sampled_from(["number", "note", "state"]), st.integers(0, 10**12)
        ),
        max_size=30,
    ),
    st.integers(1, 10),
)
def test_touched_keys_are_those_of_a_plain_loop(rows: list[tuple[int, int, str, int]], chunk: int) -> None:
    """However the batch is cut into chunks."""
    expected: dict[tuple[int, ...], int] = {}
    unused = 0
    changes = []
    for old, new, column, sequence in rows:
        changes.append(change(ORDERS, sequence, order(old), order(new) | {column: "other"}))
        if old == new and column != "number":
            unused += 1
            continue
        for key in (old, new):
            expected[(key,)] = max(expected.get((key,), 0), sequence)
    table = batch(*changes)
    parts = [table.slice(first, chunk) for first in range(0, table.num_rows, chunk)]
    touched = read(graph_of(), pa.concat_tables(parts) if parts else table)
    assert touched.roots == expected
    assert (touched.changes, touched.unused) == (len(rows), unused)
