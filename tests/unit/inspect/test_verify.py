"""The walk over frames and checksums, beside its twin in plain Python, on whole and on broken files."""

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from penstock.binlog.events.file import LogFile
from penstock.errors import BinlogError
from penstock.inspect.verify import FileVerdict, verify_file
from tests.support.shop_log import shop_log
from tests.twins.event import MAGIC, MARIADB_ANNOTATE
from tests.twins.log import LogWriter
from tests.twins.strategy import broken, examples, logs
from tests.twins.verify import BAD_CHECKSUM, BAD_POSITION, BAD_SIZE, CUT, ENCRYPTED, WHOLE, walk

MANY = settings(examples(80), suppress_health_check=[HealthCheck.function_scoped_fixture])
WORDS = {
    CUT: "the file ends inside this event",
    BAD_SIZE: "size is not one that an event can have",
    BAD_CHECKSUM: "does not match its checksum",
    BAD_POSITION: "says that it lies before the one before it",
    ENCRYPTED: "is encrypted from here on",
}


def verdict_of(path: Path, part_bytes: int) -> FileVerdict:
    return verify_file(path, lambda _: None, part_bytes=part_bytes)


def through_a_pipe(raw: bytes, folder: Path, part_bytes: int) -> FileVerdict:
    pipe = folder / "pipe"
    os.mkfifo(pipe)

    def feed() -> None:
        with suppress(BrokenPipeError):  # what is broken early is not read to its end
            pipe.write_bytes(raw)

    writer = threading.Thread(target=feed)
    writer.start()
    try:
        return verdict_of(pipe, part_bytes)
    finally:
        writer.join(30)
        pipe.unlink()


def hold(verdict: FileVerdict, raw: bytes) -> None:
    expected = walk(raw)
    assert (verdict.events, verdict.bytes) == (expected.events, expected.at)
    if expected.why == WHOLE:
        assert verdict.problem == ""
    else:
        assert WORDS[expected.why] in verdict.problem
        assert f":{expected.at} " in verdict.problem


@given(logs(files=1), st.integers(64, 4_000), st.data())
@MANY
def test_the_walk_is_its_twin(tmp_path: Path, log: LogWriter, part_bytes: int, data: st.DataObject) -> None:
    raw = MAGIC + bytes(log.data)
    if data.draw(st.booleans()):
        raw = data.draw(broken(raw, len(MAGIC)))
    path = tmp_path / "binlog.000001"
    path.write_bytes(raw)
    hold(verdict_of(path, part_bytes), raw)


@given(st.integers(4, 2_000), st.integers(16, 3_000))
@example(4, 100)
@settings(examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_pipe_is_read_piece_by_piece(tmp_path: Path, size: int, part_bytes: int) -> None:
    raw = (MAGIC + bytes(shop_log().data))[:size]
    hold(through_a_pipe(raw, tmp_path, part_bytes), raw)


@pytest.mark.parametrize("is_pipe", [True, False])
@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "this is no binlog: it is empty"),
        (b"\xfeb", "this is no binlog: it begins with fe 62"),
        (b"\x89PNG....", "it begins with 89 50 4e 47"),
        (b"\xfdbin....", "the file is encrypted"),
    ],
)
def test_what_is_no_binlog(tmp_path: Path, raw: bytes, words: str, is_pipe: bool) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(raw)
    verdict = through_a_pipe(raw, tmp_path, 100) if is_pipe else verdict_of(path, 100)
    assert words in verdict.problem
    assert verdict.events == 0


def test_what_is_encrypted_is_not_checked(tmp_path: Path) -> None:
    log = LogWriter().open()
    log.add(164, bytes(17))
    raw = MAGIC + bytes(log.data) + os.urandom(500)
    path = tmp_path / "binlog.000001"
    path.write_bytes(raw)
    verdict = verdict_of(path, 1 << 20)
    hold(verdict, raw)
    assert verdict.events == 2
    assert "only its server has the key" in verdict.problem


@pytest.mark.parametrize("has_ends", [True, False])
def test_it_agrees_with_reading_on_where_events_lie(tmp_path: Path, has_ends: bool) -> None:
    """From MariaDB 11.4 on events inside a transaction have no end position; a wrong one is wrong for both."""
    log = LogWriter(has_ends=has_ends).open()
    log.begin()
    log.add(MARIADB_ANNOTATE, b"INSERT")
    log.commit()
    path = tmp_path / "binlog.000001"
    path.write_bytes(MAGIC + bytes(log.data))
    assert verdict_of(path, 1 << 20).problem == ""
    assert list(LogFile(path))[-1].end.offset == path.stat().st_size
    at, log.position = log.position, 60
    log.begin()
    path.write_bytes(MAGIC + bytes(log.data))
    verdict = verdict_of(path, 1 << 20)
    hold(verdict, path.read_bytes())
    assert f"binlog.000001:{at} MARIADB_GTID: the event says that it lies before the one before it" in verdict.problem
    with pytest.raises(BinlogError, match=f"000001:{at}.*lies before the one before it"):
        list(LogFile(path))
