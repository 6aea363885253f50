"""The end of a server's log and its GTIDs belong together, whatever the log contains and whoever writes to it."""

import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from penstock.source import connect, current_position
from penstock.store import BatchSize, Start
from penstock.testing import DatabaseServer
from tests.support.capture import end_of, execute, poll, source_of
from tests.support.following import fill, following, seen_after

Servers = Callable[..., Any]
ROUNDS, WRITERS, DEADLINE_S = 200, 3, 60.0


@pytest.mark.parametrize("kind", ["mariadb", "mariadb11"])
def test_an_event_above_the_packet_limit_is_no_reset_of_the_log(
    private_server: Servers, kind: str, tmp_path: Path
) -> None:
    server: DatabaseServer = private_server(kind)
    execute(server, "CREATE DATABASE replicated", "CREATE TABLE replicated.t (id INT PRIMARY KEY, v LONGTEXT)")
    with following(server, data_dir=tmp_path) as instance:
        instance.clients.subscribe(1, "", Start.stored())
        # Both images of the row are one event.
        execute(server, "INSERT INTO replicated.t VALUES (1, REPEAT('x', 9000000))")
        execute(server, "UPDATE replicated.t SET v = CONCAT(v, 'y')")
        end = end_of(server)
        assert end.gtids is not None
        assert end.gtids.ranges
        assert poll(lambda: instance.store.latest >= end)
        while (batch := instance.clients.get(1, BatchSize(1000), 0.5)) is not None:
            instance.clients.ack(1, batch[0])
    with following(server, data_dir=tmp_path) as instance:
        fill(server, range(2, 4))
        assert poll(lambda: seen_after(instance, end) == {2, 3})


@pytest.mark.parametrize("kind", ["mariadb", "mariadb11"])
def test_the_gtids_of_the_end_are_those_before_it_while_others_commit(private_server: Servers, kind: str) -> None:
    server: DatabaseServer = private_server(kind)
    execute(server, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT)")
    stopped = threading.Event()

    def write() -> None:
        with server.connect() as connection, connection.cursor() as cursor:
            while not stopped.is_set():
                cursor.execute("INSERT INTO d.t VALUES ()")
                connection.commit()

    writers = [threading.Thread(target=write) for _ in range(WRITERS)]
    for writer in writers:
        writer.start()
    source, ends = source_of(server), set[str]()
    rounds, deadline = 0, time.monotonic() + DEADLINE_S
    try:
        with closing(connect(source)) as connection, connection.cursor() as cursor:
            while rounds < ROUNDS or (len(ends) <= ROUNDS // 2 and time.monotonic() < deadline):
                rounds += 1
                end = current_position(connection, source)
                cursor.execute("SELECT BINLOG_GTID_POS(%s, %s)", (end.file, end.offset))
                (gtids,) = cursor.fetchone() or (None,)
                assert end.gtids is not None
                assert end.gtids.text == gtids, str(end)
                ends.add(str(end))
    finally:
        stopped.set()
        for writer in writers:
            writer.join(20)
    assert len(ends) > ROUNDS // 2, "the log grew while it was asked"
