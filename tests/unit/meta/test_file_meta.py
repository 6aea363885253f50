"""Cursors in a file: canal's is read, ours is replaced as a whole, and a crash leaves one that is whole."""

import json
import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import FencedError, MetaError
from penstock.meta import BatchRange, Cursor, FileMetaBackend, PersistentMetaManager
from penstock.meta.record import ClientRecord
from penstock.model import GtidSet, Position
from tests.support.meta_values import at
from tests.twins.strategy import examples

CANAL = (
    '{"clientDatas":[{"clientIdentity":{"clientId":1001,"destination":"example","filter":""},"cursor":{"identity":'
    '{"slaveId":-1,"sourceAddress":{"address":"mysql","port":3306}},"postion":{"gtid":"","included":false,"journalName":'
    '"mysql-bin.000032","position":696,"serverId":1,"timestamp":1589189724000}}}],"destination":"example"}'
)
CURSOR = Cursor(Position("mysql-bin.000032", 696, 1589189724), 1, ("mysql", 3306))


def file_meta(folder: Path, *, period_s: float = 3600, fence: int = 0) -> PersistentMetaManager:
    return PersistentMetaManager("example", FileMetaBackend("example", folder, fence=fence), period_s=period_s)


def write(folder: Path, content: str | bytes, name: str = "meta.dat") -> Path:
    path = folder / "example" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def saved(folder: Path, offset: int) -> None:
    with file_meta(folder, period_s=3600) as meta:
        meta.subscribe(1)
        meta.update_cursor(1, Cursor(at(offset)))


def cursor_in(folder: Path) -> Cursor | None:
    """That of the file, whoever has it."""
    records = {record.client_id: record for record in FileMetaBackend("example", folder).read_records()}
    return records[1].cursor if 1 in records else None


def test_canals_file_is_read(tmp_path: Path) -> None:
    write(tmp_path, CANAL)
    with file_meta(tmp_path) as meta:
        assert meta.subscriptions() == {1001: ""}
        assert meta.cursor(1001) == CURSOR


def test_ours_is_canals_with_more_in_it(tmp_path: Path) -> None:
    path = write(tmp_path, CANAL)
    with file_meta(tmp_path, fence=3) as meta:
        meta.update_cursor(1001, CURSOR)
    stored, canal = json.loads(path.read_bytes()), json.loads(CANAL)
    assert (stored.pop("fence"), stored.pop("generation")) == (3, 2)
    assert stored.pop("checksum")
    assert stored["clientDatas"][0]["cursor"].pop("epoch") == 0
    assert stored["clientDatas"][0].pop("batchIdsUntil") == 1_000_000
    assert stored == canal


@examples(60)
@given(st.integers(0, 511), st.integers(4, 1 << 40), st.integers(1, 1 << 20), st.sampled_from(["0-1-25", "", None]))
def test_a_cursor_comes_back_as_it_was(epoch: int, offset: int, file: int, gtids: str | None) -> None:
    known = GtidSet.parse(gtids) if gtids else None
    cursor = Cursor(Position(f"binlog.{file:06}", offset, 1_700_000_000, epoch, known), 9, ("db", 3306))
    read_back = Cursor.from_json(json.loads(json.dumps(cursor.to_json(with_type=True))))
    assert (read_back, read_back.position.timestamp, read_back.position.gtids) == (cursor, 1_700_000_000, known)


@pytest.mark.parametrize("text", ["none", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-2-3"])
def test_gtids_that_cannot_be_read_leave_the_position(text: str) -> None:
    written = Cursor(at(100)).to_json()
    written["postion"]["gtid"] = text
    read_back = Cursor.from_json(written)
    assert (read_back.position, read_back.position.gtids) == (at(100), None)


@pytest.mark.parametrize("value", [{}, {"postion": None}, {"postion": {"journalName": "x", "position": 4}}])
def test_what_is_no_cursor(value: dict[str, object]) -> None:
    with pytest.raises(MetaError, match="this is no cursor"):
        Cursor.from_json(value)


def test_another_manager_sees_what_was_kept(tmp_path: Path) -> None:
    with file_meta(tmp_path, period_s=3600) as meta:
        meta.subscribe(1, "shop.*")
        meta.subscribe(2)
        meta.update_cursor(1, Cursor(at(100, timestamp=5, epoch=2)))
        meta.update_cursor(2, Cursor(at(200)))
        meta.add_batch(1, BatchRange(at(100), at(200), 7))
        meta.unsubscribe(2)
    with file_meta(tmp_path) as meta:
        assert meta.subscriptions() == {1: "shop.*"}
        assert meta.cursor(1) == Cursor(at(100, epoch=2))
        assert meta.cursor(2) == Cursor(at(200))
        assert meta.batches(1) == {}


def test_it_is_written_every_period(tmp_path: Path) -> None:
    with file_meta(tmp_path, period_s=0.01) as meta:
        meta.subscribe(1)
        meta.update_cursor(1, Cursor(at(100)))
        waited, path = threading.Event(), tmp_path / "example" / "meta.dat"
        for _ in range(500):
            if path.exists() and b'"position":100' in path.read_bytes():
                break
            waited.wait(0.02)
        assert b'"position":100' in path.read_bytes()


@pytest.mark.parametrize("keep", [0, 1, 30, -1])
def test_a_damaged_file_is_replaced_by_the_one_before(tmp_path: Path, keep: int) -> None:
    saved(tmp_path, 100)
    saved(tmp_path, 200)
    path = tmp_path / "example" / "meta.dat"
    path.write_bytes(path.read_bytes()[:keep])
    assert cursor_in(tmp_path) == Cursor(at(100))


def test_a_flipped_byte_is_noticed(tmp_path: Path) -> None:
    saved(tmp_path, 100)
    saved(tmp_path, 200)
    path = tmp_path / "example" / "meta.dat"
    path.write_bytes(path.read_bytes().replace(b'"position":200', b'"position":900'))
    assert cursor_in(tmp_path) == Cursor(at(100))


def test_without_any_whole_file_it_does_not_start_from_nothing(tmp_path: Path) -> None:
    write(tmp_path, CANAL[:-40])
    with pytest.raises(MetaError, match=r"meta\.dat cannot be read, and there is no other"):
        file_meta(tmp_path).start()


def test_an_empty_file_is_not_taken_for_a_first_start(tmp_path: Path) -> None:
    """Canal leaves one when it dies while writing; to start from it would skip changes."""
    write(tmp_path, "")
    with pytest.raises(MetaError, match=r"meta\.dat cannot be read"):
        file_meta(tmp_path).start()


def test_a_file_that_was_removed_is_a_first_start(tmp_path: Path) -> None:
    saved(tmp_path, 100)
    saved(tmp_path, 200)
    (tmp_path / "example" / "meta.dat").unlink()
    assert cursor_in(tmp_path) is None


def test_a_damaged_file_does_not_replace_the_whole_one_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(tmp_path, 100)
    saved(tmp_path, 200)
    write(tmp_path, "damaged")
    meta = file_meta(tmp_path)
    meta.start()
    meta.update_cursor(1, Cursor(at(300)))

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", crash)  # the process dies before the new file has its name
    with pytest.raises(KeyboardInterrupt):
        meta.flush()
    monkeypatch.undo()
    assert cursor_in(tmp_path) == Cursor(at(100))


def test_one_process_has_the_file(tmp_path: Path) -> None:
    with (
        file_meta(tmp_path),
        pytest.raises(MetaError, match=r"meta\.dat is in use by another process: a server that runs"),
    ):
        file_meta(tmp_path).start()
    with file_meta(tmp_path):
        pass


def test_an_older_server_is_refused(tmp_path: Path) -> None:
    with file_meta(tmp_path, fence=5) as meta:
        meta.subscribe(1)
    with pytest.raises(FencedError, match="written by a server of epoch 5, and this one is of 4"):
        file_meta(tmp_path, fence=4).start()
    file_meta(tmp_path, fence=6).start()


def test_a_disk_that_cannot_be_written_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path, 100)
    meta = file_meta(tmp_path, period_s=3600)
    meta.start()
    meta.update_cursor(1, Cursor(at(200)))
    real = os.fsync

    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MetaError, match=r"meta\.dat cannot be written: No space left on device"):
        meta.flush()
    assert meta.problem
    monkeypatch.setattr(os, "fsync", real)
    assert cursor_in(tmp_path) == Cursor(at(100))
    meta.stop()
    assert (cursor_in(tmp_path), meta.problem) == (Cursor(at(200)), "")


@pytest.mark.parametrize("step", ["open", "fsync", "link", "rename", "second rename", "done"])
def test_a_crash_at_any_step_leaves_a_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    saved(tmp_path, 100)
    saved(tmp_path, 200)
    meta = file_meta(tmp_path, period_s=3600)
    meta.start()
    meta.update_cursor(1, Cursor(at(300)))
    renames = [0]

    class Crash(BaseException):
        pass

    def crash(*_: object) -> None:
        raise Crash

    real = Path.replace

    def rename(self: Path, target: Path) -> Path:
        renames[0] += 1
        if renames[0] == {"rename": 1, "second rename": 2}[step]:
            raise Crash
        return real(self, target)

    match step:
        case "open":
            monkeypatch.setattr(Path, "open", crash)
        case "fsync":
            monkeypatch.setattr(os, "fsync", crash)
        case "link":
            monkeypatch.setattr(os, "link", crash)
        case "rename" | "second rename":
            monkeypatch.setattr(Path, "replace", rename)
        case _:
            pass
    try:
        meta.flush()
    except Crash:
        assert step != "done"
    monkeypatch.undo()
    assert cursor_in(tmp_path) == Cursor(at(300 if step == "done" else 200))


def test_the_name_of_a_new_file_is_on_the_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First the file, then its name."""
    saved(tmp_path, 100)
    synced = list[bool]()
    real = os.fsync

    def noted(file: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(file).st_mode))
        real(file)

    monkeypatch.setattr(os, "fsync", noted)
    meta = file_meta(tmp_path, period_s=3600)
    meta.start()
    synced.clear()
    meta.update_cursor(1, Cursor(at(200)))
    meta.flush()
    assert synced == [False, True]
    meta.stop()


def test_who_subscribes_is_known_at_once(tmp_path: Path) -> None:
    """A kill would leave a client that nobody knows of, and it would miss what came since."""
    with file_meta(tmp_path, period_s=3600) as meta:
        meta.subscribe(1, "shop.*", Cursor(at(100)))
        (record,) = FileMetaBackend("example", tmp_path).read_records()
        assert (record.filter, record.cursor) == ("shop.*", Cursor(at(100)))
        assert record.ids_until >= 1_000_000  # a batch that is given out now has an id that is not given out again
        meta.unsubscribe(1)
        (record,) = FileMetaBackend("example", tmp_path).read_records()
        assert not record.is_subscribed
        meta.forget(1)
        assert FileMetaBackend("example", tmp_path).read_records() == []


def test_ids_are_reserved_before_they_are_given_out(tmp_path: Path) -> None:
    with file_meta(tmp_path) as meta:
        meta.subscribe(1)
    with file_meta(tmp_path, period_s=3600) as meta:
        first = meta.add_batch(1, BatchRange(at(100), at(200), 7))
        (record,) = FileMetaBackend("example", tmp_path).read_records()
        assert record.ids_until > first > 1_000_000


@pytest.mark.parametrize("period_s", [None, 0.0, 3600.0])
def test_a_subscription_that_cannot_be_kept_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, period_s: float | None
) -> None:
    with file_meta(tmp_path, period_s=period_s) as meta:
        meta.subscribe(1, "a", Cursor(at(100)))
        with monkeypatch.context() as broken:
            broken.setattr(os, "fsync", _no_room)
            with pytest.raises(MetaError, match="cannot be written"):
                meta.subscribe(1, "b")
            with pytest.raises(MetaError, match="cannot be written"):
                meta.subscribe(2)
            with pytest.raises(MetaError, match="cannot be written"):
                meta.forget(1)
        assert meta.subscriptions() == {1: "a"}
    with file_meta(tmp_path) as meta:
        assert (meta.subscriptions(), meta.cursor(1)) == ({1: "a"}, Cursor(at(100)))


def _no_room(_: int) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("period_s", [None, 3600.0])
def test_after_the_stop_nothing_is_written_any_more(tmp_path: Path, period_s: float | None) -> None:
    """Another server may have the file by then."""
    old = file_meta(tmp_path, period_s=period_s)
    old.start()
    old.subscribe(1)
    old.subscribe(2, "", Cursor(at(4)))
    old.stop()
    with file_meta(tmp_path) as new:
        new.update_cursor(2, Cursor(at(124)))
        new.flush()
        for late in (lambda: old.update_cursor(1, Cursor(at(50))), lambda: old.unsubscribe(2)):
            with pytest.raises(MetaError, match=r"no longer ours|not ours"):
                late()
        assert {record.client_id: record.cursor for record in FileMetaBackend("example", tmp_path).read_records()} == {
            1: None,
            2: Cursor(at(124)),
        }


def test_the_one_before_is_there_from_the_second_on(tmp_path: Path) -> None:
    with file_meta(tmp_path, period_s=None) as meta:
        meta.subscribe(1, "", Cursor(at(100)))
        meta.update_cursor(1, Cursor(at(200)))
    assert b'"position":100' in (tmp_path / "example" / "meta.dat.previous").read_bytes()


def test_one_whose_election_has_ended_writes_nothing(tmp_path: Path) -> None:
    def refuse() -> None:
        raise FencedError("it has ended")

    backend = FileMetaBackend("example", tmp_path, check=refuse)
    backend.load()
    with pytest.raises(FencedError):
        backend.save([ClientRecord(1)])
    assert not backend.path.exists()
    backend.close()
