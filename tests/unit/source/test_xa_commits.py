"""On MariaDB an XA COMMIT is counted by a snapshot's position before its rows can be seen."""

from typing import Any

import pytest

from penstock.config import SourceSettings
from penstock.model import Position
from penstock.source.consistent_read import ConsistentRead, Watermark
from penstock.source.visibility import LogVisibility

END = Position("binlog.000001", 900)


class Server:
    """A quiet MariaDB server whose log ends at END. `running` are the answers to who runs XA COMMIT, the last one for
    ever; `started` those to how many were started."""

    def __init__(
        self, running: list[list[tuple[int, int]]], started: list[int], *, grant: str = "ALL PRIVILEGES ON *.*"
    ) -> None:
        self.running, self.started, self.grant, self.asked = running, started, grant, 0

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        answers = {
            "SHOW GRANTS": [("GRANT USAGE ON *.* TO `r`",), (f"GRANT {self.grant} TO `reader`@`10.%`",)],
            "CURRENT_USER": [("reader@10.%",)],
            "log_bin": [("10.11.6-MariaDB", 1)],
            "VERSION": [("10.11.6-MariaDB",)],
            "MASTER STATUS": [(END.file, END.offset)],
            "Binlog_snapshot": [("Binlog_snapshot_file", END.file), ("Binlog_snapshot_position", END.offset)],
            "BINLOG EVENTS": [
                (END.file, 4, "Format_desc", 1, 256, "", ""),
                (END.file, 256, "Binlog_checkpoint", 1, 300, END.file, ""),
                (END.file, 300, "Gtid", 1, END.offset, "", ""),
            ],
        }
        if "Com_xa_commit" in sql:
            return [("Com_xa_commit", self.started.pop(0) if len(self.started) > 1 else self.started[0])]
        if "processlist" in sql:
            self.asked += 1
            return [*(self.running.pop(0) if len(self.running) > 1 else self.running[0])]
        return next((rows for words, rows in answers.items() if words in sql), [])


def _wait(server: Server) -> int:
    """Wait for what is in the log, and return how often it was slept."""
    pauses: list[float] = []
    LogVisibility(server.query, clock=lambda: float(len(pauses)), sleep=pauses.append).wait(60)
    return len(pauses)


def test_a_read_waits_for_xa_commits_that_were_running_when_the_log_was_asked() -> None:
    assert _wait(Server([[(7, 70)], [(7, 70)], [(7, 70)], [(7, 71), (8, 80)]], [3])) == 2


def test_a_server_that_never_ran_xa_is_not_asked_for_statements() -> None:
    server = Server([[(7, 70)]], [0])
    assert _wait(server) == 0
    assert server.asked == 0


@pytest.mark.parametrize(
    ("grant", "is_told"),
    [
        ("ALL PRIVILEGES ON *.*", False),
        ("SELECT, PROCESS, BINLOG MONITOR ON *.*", False),
        ("SELECT, REPLICATION SLAVE ON *.*", True),
        ("ALL PRIVILEGES ON `shop`.*", True),
    ],
)
def test_a_user_that_cannot_see_xa_commits_of_others_is_told_once(
    grant: str, is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server([[]], [3], grant=grant)
    for _ in range(3):
        visibility = LogVisibility(server.query, address=f"db1 of {grant}")
        visibility.wait(60)
        visibility.wait(60)
    words = [record.getMessage() for record in caplog.records]
    assert len(words) == int(is_told)
    assert all("GRANT PROCESS ON *.* TO 'reader'@'10.%'" in text for text in words)


def test_a_user_of_a_server_that_never_ran_xa_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    assert _wait(Server([[]], [0], grant="SELECT ON *.*")) == 0
    assert not caplog.records


class _Read(ConsistentRead):
    def __init__(self, server: Server) -> None:
        self.query = server.query  # type: ignore[method-assign,assignment]
        super().__init__(None, SourceSettings())


def test_a_position_is_exact_unless_an_xa_commit_was_started_meanwhile() -> None:
    assert _Read(Server([[]], [5])).open() == Watermark(END, END)
    assert _Read(Server([[]], [5]))._open().is_exact
    rising = Server([[]], list(range(1000)))
    later = Position(END.file, 950)
    ends = iter([END, END])
    rising_query = rising.query

    def query(sql: str) -> list[tuple[Any, ...]]:
        if "MASTER STATUS" in sql:
            return [(end.file, end.offset) for end in [next(ends, later)]]
        return rising_query(sql)

    rising.query = query  # type: ignore[method-assign]
    assert _Read(rising)._open() == Watermark(END, later)


class _RecordingServer(Server):
    """A server that remembers its statements."""

    def __init__(self, running: list[list[tuple[int, int]]], started: list[int]) -> None:
        super().__init__(running, started)
        self.statements: list[str] = []

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        self.statements.append(sql)
        return super().query(sql)


def test_a_view_without_a_position_waits_for_xa_commits_as_well() -> None:
    server = _RecordingServer([[(7, 70)], [(7, 70)], []], [3])
    _Read(server).open_current()
    assert server.asked == 3
    assert server.statements[-1].startswith("START TRANSACTION WITH CONSISTENT SNAPSHOT")


def test_a_view_without_a_position_asks_for_none() -> None:
    plain, marked = (_RecordingServer([[]], [0]) for _ in range(2))
    readings = _Read(plain), _Read(marked)
    readings[0].open_current()
    readings[1].open()
    for server, reading in zip((plain, marked), readings, strict=True):
        server.statements.clear()  # what was asked once
        (reading.open_current if server is plain else reading.open)()
    assert len(marked.statements) - len(plain.statements) == 5, plain.statements
    assert sum("Binlog_snapshot" in sql for sql in plain.statements) == 1, "only whether the log's end is visible"
