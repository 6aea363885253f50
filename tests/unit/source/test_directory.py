"""A folder of log files, followed: whatever the pieces in which files grow, the blocks are those of the whole log."""

import random
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import EventType
from penstock.config import DirectorySettings
from penstock.errors import BinlogError, ConfigurationError, PositionLostError, SourceConnectionError
from penstock.model import GtidSet, Position
from penstock.source.directory import DirectoryStream
from penstock.source.folder import list_log_files, open_folder
from tests.support.log_folder import FIRST, NAMES, file_of, in_folder, positions, read, rotated, stream_of
from tests.support.shop_log import written
from tests.twins.strategy import examples


@pytest.mark.parametrize("ends_with_rotation", [True, False], ids=["rotated", "stopped"])
@pytest.mark.parametrize("is_checksummed", [True, False])
def test_files_follow_one_another(tmp_path: Path, ends_with_rotation: bool, is_checksummed: bool) -> None:
    make = rotated if ends_with_rotation else file_of
    logs = [make(number, 3, is_checksummed=is_checksummed) for number in (9, 10)] + [file_of(11, 2)]
    positions_read = positions(read(in_folder(tmp_path, logs)))
    assert [name for name, _ in positions_read] == [
        name for name, count in zip(NAMES, (3, 3, 2), strict=False) for _ in range(4 * count)
    ]
    assert positions_read == sorted(positions_read)


@pytest.mark.parametrize("is_mariadb", [True, False])
def test_it_begins_at_any_transaction(tmp_path: Path, is_mariadb: bool) -> None:
    """As if it had come from the beginning, in the first file and in later ones."""
    logs = [rotated(9, 4, is_mariadb=is_mariadb), rotated(10, 4, is_mariadb=is_mariadb)]
    in_folder(tmp_path, [*logs, file_of(11, 0, is_mariadb=is_mariadb)])
    whole = positions(read(tmp_path))
    for log, name in zip(logs, NAMES, strict=False):
        for boundary in log.boundaries:
            start = Position(name, boundary)
            blocks = read(tmp_path, start)
            assert positions(blocks) == [position for position in whole if Position(*position) >= start]
            assert all(block.server_version for block in blocks)


def test_gtids_and_epoch_continue_from_file_to_file(tmp_path: Path) -> None:
    in_folder(tmp_path, [rotated(9, 2), file_of(10, 0), file_of(11, 3)])
    start = Position(NAMES[0], 4, epoch=3, gtids=GtidSet.parse("5-1-900"))
    blocks = read(tmp_path, start)
    last = blocks[-1].boundary_after(int(blocks[-1].boundaries[-1]))
    assert last.epoch == 3
    assert last.gtids is not None
    assert last.gtids.text == "5-1-1103"


@contextmanager
def growing(source: Path, target: Path, cuts: list[int]) -> Iterator[threading.Thread]:
    """The files come in pieces of these sizes, one file after the other."""

    def copy() -> None:
        for path in sorted(source.iterdir()):
            data, sizes = path.read_bytes(), iter(cuts)
            with (target / path.name).open("ab", buffering=0) as file:
                while data:
                    size = next(sizes, len(data))
                    file.write(data[:size])
                    data = data[size:]

    thread = threading.Thread(target=copy)
    thread.start()
    yield thread
    thread.join()


@examples(20)
@given(st.lists(st.integers(1, 200), max_size=30), st.integers(0, 5))
def test_files_that_grow_in_pieces(tmp_path_factory: pytest.TempPathFactory, cuts: list[int], count: int) -> None:
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    in_folder(source, [rotated(9, count), rotated(10, count), file_of(11, 2)])
    whole = positions(read(source))
    (target / NAMES[0]).touch()
    blocks = list[Block]()
    with growing(source, target, cuts), stream_of(target, follow=True) as stream:
        for block in stream:
            blocks += [block] if block is not None else []
            if len(positions(blocks)) >= len(whole):
                stream.stop()
    assert positions(blocks) == whole


def test_it_says_that_it_lives_and_stops(tmp_path: Path) -> None:
    in_folder(tmp_path, [file_of(9, 1)])
    with stream_of(tmp_path, follow=True) as stream:
        blocks = iter(stream)
        assert not stream.is_flowing
        assert next(blocks) is not None
        assert stream.is_flowing
        assert [next(blocks), next(blocks)] == [None, None]
        timer = threading.Timer(0.05, stream.stop)
        timer.start()
        assert not any(blocks)
        timer.join()


def test_the_end_of_the_last_file_may_be_torn(tmp_path: Path) -> None:
    log = file_of(9, 3)
    in_folder(tmp_path, [log])
    path = tmp_path / NAMES[0]
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    with stream_of(tmp_path, follow=True) as stream:
        blocks = iter(stream)
        first = next(blocks)
        assert first is not None
        assert len(first) == 11
        assert next(blocks) is None
        path.write_bytes(whole)
        last = next(block for block in blocks if block is not None)
        assert (len(last), last.end.offset) == (1, len(whole))


@pytest.mark.parametrize("kept", [-5, 3, 10], ids=["inside an event", "inside the magic", "inside the head"])
def test_a_torn_file_before_another_is_an_error(tmp_path: Path, kept: int) -> None:
    in_folder(tmp_path, [rotated(9, 2), file_of(10, 1)])
    path = tmp_path / NAMES[0]
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(
        (BinlogError, SourceConnectionError),
        match=r"binlog\.000009 (ends inside an event.*binlog\.000010 is there|is no binlog)",
    ):
        read(tmp_path)


def test_a_file_without_an_end_is_not_trusted(tmp_path: Path) -> None:
    """Without GTIDs nobody can tell a copy that is not complete from what a server left that was killed."""
    in_folder(tmp_path, [file_of(9, 2), file_of(10, 1)])
    with stream_of(tmp_path, trust_ends=False) as stream:
        blocks = iter(stream)
        assert next(blocks) is not None
        with pytest.raises(SourceConnectionError, match=r"binlog\.000009 has no end: .* say `trust_ends: true`"):
            list(blocks)


def test_the_end_of_the_file_before_is_not_that_of_this_one(tmp_path: Path) -> None:
    """Of which there is the head, and no more."""
    first = file_of(9, 2)
    first.add(EventType.STOP, b"")
    in_folder(tmp_path, [first, file_of(10, 0), file_of(11, 1)])
    with (
        stream_of(tmp_path, trust_ends=False) as stream,
        pytest.raises(SourceConnectionError, match=r"binlog\.000010 has no end"),
    ):
        list(stream)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    in_folder(tmp_path, [rotated(9, 1), rotated(10, 1), file_of(11, 1)])
    (tmp_path / NAMES[1]).unlink()
    with pytest.raises(PositionLostError, match=r"has no binlog\.000010, and binlog\.000011 after it"):
        read(tmp_path)
    with pytest.raises(PositionLostError, match=r"has no binlog\.000010: it has binlog\.000009 to binlog\.000011"):
        read(tmp_path, Position(NAMES[1], 4))
    with pytest.raises(PositionLostError, match=r"binlog\.000011:99999 is after the end"):
        read(tmp_path, Position(NAMES[2], 99999))


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    in_folder(tmp_path, [file_of(9, 1)])
    (tmp_path / "binlog.index").write_text("./binlog.000009\n")
    (tmp_path / "aria_log.00000001").write_bytes(b"\xfe\xfe\x0c\x01")
    folder = open_folder(str(tmp_path))
    assert list_log_files(folder) == list_log_files(folder, "binlog") == NAMES[:1]
    shutil.copyfile(tmp_path / NAMES[0], tmp_path / "relay.000010")
    with pytest.raises(ConfigurationError, match="several logs, binlog, relay: say which"):
        list_log_files(folder)
    assert list_log_files(folder, "relay") == ["relay.000010"]
    assert [block.file for block in read(tmp_path)] == NAMES[:1]
    with pytest.raises(ConfigurationError, match="there is no folder"):
        read(tmp_path / "nowhere")


def test_numbers_are_no_text(tmp_path: Path) -> None:
    for number in (999_999, 1_000_000):
        written(file_of(9, 1), tmp_path, f"binlog.{number}")
    assert [block.file for block in read(tmp_path, Position("binlog.999999", 4))] == ["binlog.999999", "binlog.1000000"]


def test_a_url_is_a_folder_too(tmp_path: Path) -> None:
    import fsspec

    files = fsspec.filesystem("memory")
    url = f"memory://logs{random.randrange(1 << 30)}"
    in_folder(tmp_path, [rotated(9, 5), file_of(10, 5)])
    whole = positions(read(tmp_path))
    files.pipe(f"{url}/{NAMES[0]}", (tmp_path / NAMES[0]).read_bytes())
    data = (tmp_path / NAMES[1]).read_bytes()
    settings = DirectorySettings(path=url, poll_s=0.001)
    blocks = list[Block]()
    with DirectoryStream(settings, FIRST) as stream:
        for block in stream:
            blocks += [block] if block is not None else []
            if block is None and not files.exists(f"{url}/{NAMES[1]}"):
                files.pipe(f"{url}/{NAMES[1]}", data[:300])
            elif block is None:
                files.pipe(f"{url}/{NAMES[1]}", data)
            if positions(blocks) == whole:
                stream.stop()
    assert positions(blocks) == whole
    with (
        pytest.raises(PositionLostError, match=r"has no binlog\.000012"),
        DirectoryStream(settings, Position(NAMES[3], 4)),
    ):
        pass


@pytest.mark.parametrize("url", ["nothing://x/y", "abfs:// x"])
def test_a_url_that_nobody_can_read(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be read|can be read"):
        DirectoryStream(DirectorySettings(path=url), FIRST)
