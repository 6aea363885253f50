"""A range of the log that was planned before the source failed over: it is read again with the same order of its rows,
or not at all while rows of both logs would be mixed."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.binlog.rows.changes import decode_changes
from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.errors import PositionLostError
from penstock.instance import Instance
from penstock.instance.batch_plan import BatchLimit
from penstock.model import Position, TableName
from tests.support.capture import poll
from tests.support.following import fill, following, is_there, table
from tests.support.replication import has, pair

TABLE = TableName.parse("replicated.t")


def rows_of(instance: Instance, start: Position, end: Position) -> list[tuple[int, int]]:
    """The ids of a range, and their order, as the parts of the range have them."""
    (schema,) = instance.describe_tables([TABLE])
    return [
        (row["id"], row["_seq"])
        for part in instance.split_range(start, end)
        for block in instance.read(*part)
        for batch in decode_changes(block, TABLE, arrow_fields_of_table(schema))
        for row in batch.to_pylist()
    ]


@pytest.mark.mariadb
def test_a_range_of_the_log_before_keeps_its_order_or_is_refused(private_server: Callable[..., Any]) -> None:
    first, second = pair(private_server, "mariadb")
    table(first)
    assert poll(lambda: has(second, "SHOW TABLES FROM replicated LIKE 't'"))
    with following(first, second) as instance:

        def write(ids: range) -> Position:
            fill(first, ids)
            end = instance.source_log.end()
            assert poll(lambda: instance.store.latest >= end)
            return instance.store.latest

        start = write(range(1))
        middle, end = write(range(1, 6)), write(range(6, 11))
        later = write(range(11, 16))
        instance.ack(start, "spark")
        planned = rows_of(instance, start, end)
        assert [number for number, _ in planned] == list(range(1, 11))
        assert poll(lambda: is_there(second, 15))
        first.kill()
        fill(second, range(16, 20))
        assert poll(lambda: instance.store.latest.epoch == 1)
        assert rows_of(instance, start, end) == planned

        # Part of it is gone, then all of it, while the store has what comes after it in the same log.
        for gone in (middle, end):
            instance.ack(gone, "spark")
            assert instance.store.first == gone
            with pytest.raises(PositionLostError, match=r"startingPosition gtid:\S+$"):
                rows_of(instance, start, end)
            with pytest.raises(PositionLostError, match="the store has only a part of that log"):
                list(instance.read(start, end))
        assert [number for number, _ in rows_of(instance, end, later)] == list(range(11, 16))

        # What ends before the store begins is read from the new log, and so is all that follows it.
        early = rows_of(instance, start, middle)
        reached = middle
        while reached < instance.store.latest:
            next_end = instance.find_batch_end(reached, 1 << 26, 5)
            early += rows_of(instance, reached, next_end)
            reached = next_end
        assert [number for number, _ in early] == list(range(1, 20))
        assert [sequence for _, sequence in early] == sorted({sequence for _, sequence in early})

        # Nothing is left of that log: the range has the same rows in the new one, and so has all that follows it.
        for reader in ("spark", ""):  # the second one has found the ends of batches
            instance.ack(instance.store.latest, reader)
        again = rows_of(instance, start, end)
        assert [number for number, _ in again] == list(range(1, 11))
        assert {sequence >> 54 for _, sequence in again} == {1}
        assert min(sequence for _, sequence in again) > max(sequence for _, sequence in planned)
        with pytest.raises(PositionLostError, match="start the Spark query again with the same checkpoint"):
            list(instance.read(start, end, is_part=True))  # planned when the store had it
        next_end = instance.find_batch_end(end, 1 << 26, 5)
        following_rows = rows_of(instance, end, next_end)
        assert [number for number, _ in following_rows] == list(range(11, 20))
        assert [sequence for _, sequence in again + following_rows] == sorted(
            sequence for _, sequence in again + following_rows
        )


@pytest.mark.mariadb
def test_a_transaction_that_was_split_resumes_inside_or_from_its_begin(private_server: Callable[..., Any]) -> None:
    """Inside of it while the store has it, else from its begin in the new log: none of its rows is lost."""
    first, second = pair(private_server, "mariadb")
    table(first)
    assert poll(lambda: has(second, "SHOW TABLES FROM replicated LIKE 't'"))
    limit = BatchLimit(1 << 26, max_rows=6)
    with following(first, second) as instance:
        fill(first, range(1))
        assert poll(lambda: instance.store.latest >= instance.source_log.end())
        start = instance.store.latest
        instance.ack(start, "spark")
        with first.connect(autocommit=False) as connection, connection.cursor() as cursor:
            for number in range(1, 21):
                cursor.execute(f"INSERT INTO replicated.t VALUES ({number}, 'v')")
            connection.commit()
        assert poll(lambda: instance.store.latest >= instance.source_log.end())
        inside = instance.plan_batch(start, limit, 5, "spark").end
        assert inside.transaction is not None
        delivered = rows_of(instance, start, inside)
        assert [number for number, _ in delivered] == list(range(1, 7))
        assert poll(lambda: is_there(second, 20))
        first.kill()
        fill(second, range(21, 23))
        assert poll(lambda: instance.store.latest.epoch == 1)

        def read_from(position: Position) -> list[tuple[int, int]]:
            rows = list[tuple[int, int]]()
            while (end := instance.plan_batch(position, limit, 1, "spark").end) > position:
                rows += rows_of(instance, position, end)
                position = end
            return rows

        # The cursor is where the transaction begins, so the store has all of it, and the rest of it has its order.
        instance.ack(inside, "spark")
        rest = read_from(inside)
        assert [number for number, _ in rest] == list(range(7, 23))
        assert [sequence for _, sequence in delivered + rest] == sorted({sequence for _, sequence in delivered + rest})
        assert {sequence >> 54 for number, sequence in rest if number <= 20} == {0}

        # The store has nothing of it any more: it is redelivered from its begin, behind everything that came before.
        instance.ack(instance.store.latest, "spark")
        assert instance.store.first > inside
        again = read_from(inside)
        assert [number for number, _ in again] == list(range(1, 23))
        assert [sequence for _, sequence in again] == sorted({sequence for _, sequence in again})
        assert again[0][1] > delivered[-1][1]
        assert rows_of(instance, start, inside) == [], "a batch that ended inside: its rows come with the next one"
