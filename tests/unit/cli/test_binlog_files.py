"""Files that `penstock binlog` meets besides plain logs with a number: compressed, unnumbered, of other servers."""

import gzip
import json
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pyarrow as pa
import pytest

import penstock
from penstock.errors import BinlogError
from tests.support.shop_log import PRODUCT, binlog
from tests.twins.event import MAGIC
from tests.twins.log import LogWriter
from tests.twins.row import INSERT

PENSTOCK = Path(sys.executable).with_name("penstock")


def log_of(*ids: int, count: int = 1) -> bytes:
    log = LogWriter().open()
    for number in ids:
        log.begin()
        log.map(7, PRODUCT)
        log.rows(INSERT, 7, PRODUCT, [[number, "kettle", None]] * count)
        log.commit()
    return MAGIC + bytes(log.data)


def zstd(data: bytes) -> bytes:
    return pa.compress(data, "zstd", asbytes=True)


def pzstd(data: bytes) -> bytes:
    """Two frames, each after one with its size for who expands them in parallel."""
    frames = [zstd(data[: len(data) // 2]), zstd(data[len(data) // 2 :])]
    return b"".join(struct.pack("<III", 0x184D2A50, 4, len(frame)) + frame for frame in frames)


def lines(*arguments: object) -> list[dict[str, object]]:
    return [json.loads(line) for line in binlog(*map(str, arguments), "--output", "json").stdout.splitlines()]


@pytest.mark.parametrize(("ending", "compress"), [("gz", gzip.compress), ("zst", zstd), ("zst", pzstd)])
def test_compressed_files_are_read_as_the_plain_ones(tmp_path: Path, ending: str, compress: object) -> None:
    data = log_of(*range(20), count=100)
    plain, packed = tmp_path / "binlog.000007", tmp_path / f"binlog.000007.{ending}"
    plain.write_bytes(data)
    packed.write_bytes(compress(data))  # type: ignore[operator]
    expected = lines(plain)
    assert len(expected) == 2000
    assert lines(packed) == expected
    assert penstock.read_binlog(packed).equals(penstock.read_binlog(plain))
    verified = binlog(packed, "--verify")
    assert verified.exit_code == 0
    assert "whole, checksums match" in verified.output
    middle = f"binlog.000007:{expected[1000]['pos']}"
    assert lines(packed, "--since", middle) == lines(plain, "--since", middle)


@pytest.mark.parametrize("compress", [gzip.compress, zstd])
def test_a_compressed_file_comes_through_a_pipe(compress: object) -> None:
    data = compress(log_of(1, 2))  # type: ignore[operator]
    done = subprocess.run([PENSTOCK, "binlog", "-"], input=data, capture_output=True, check=True)
    assert [json.loads(line)["after"]["id"] for line in done.stdout.splitlines()] == [1, 2]


@pytest.mark.parametrize(("ending", "compress"), [("gz", gzip.compress), ("zst", zstd)])
def test_a_compressed_file_that_is_cut_says_so(tmp_path: Path, ending: str, compress: object) -> None:
    path = tmp_path / f"binlog.000007.{ending}"
    data = compress(log_of(*range(50), count=200))  # type: ignore[operator]
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(BinlogError, match=r"is not whole: it cannot be expanded|ends inside an event") as caught:
        lines(path)
    assert str(path.name) in str(caught.value)


def test_seq_rises_over_files_without_a_number_and_their_positions_are_taken(tmp_path: Path) -> None:
    first, second = tmp_path / "copy.a", tmp_path / "copy.b"
    first.write_bytes(log_of(1, 2, 3))
    second.write_bytes(log_of(4, 5))
    shown = lines(first, second)
    assert [line["after"]["id"] for line in shown] == [1, 2, 3, 4, 5]  # type: ignore[index]
    seqs = [line["seq"] for line in shown]
    assert seqs == sorted(set(seqs))  # type: ignore[type-var]
    for at, line in enumerate(shown):
        position = f"{line['file']}:{line['pos']}"
        assert lines(first, second, "--since", position) == shown[at:]
        if at:
            assert lines(first, second, "--until", position) == shown[:at]


def format_event(data: bytes, at: int, value: bytes) -> bytes:
    """The log with other bytes in its FORMAT_DESCRIPTION, whose checksum is right."""
    changed = bytearray(data)
    changed[at : at + len(value)] = value
    (size,) = struct.unpack_from("<I", changed, 13)
    mark = bytes([changed[21] & ~1])
    checked = bytes(changed[4:21]) + mark + bytes(changed[22 : 4 + size - 4])
    struct.pack_into("<I", changed, 4 + size - 4, zlib.crc32(checked))
    return bytes(changed)


@pytest.mark.parametrize(
    ("at", "value", "words"),
    [
        (4 + 19 + 56, b"\x1b", "have headers of 27 bytes: only logs with headers of 19 bytes"),
        (
            4 + 19 + 57 + 1,
            b"\x0b",
            "have a head of 11 bytes instead of 13: logs of MySQL 5.0 and of early versions of 5.1",
        ),
        (4 + 4, b"\x01", "logs of MySQL 4.1 and older ones are not read; the mysqlbinlog of such a server reads them"),
        (
            4 + 19 + 2,
            b"5.0.96-log".ljust(50, b"\0"),
            "the log is of server 5.0.96-log: logs of MySQL 5.0 and of early versions of 5.1",
        ),
        (4 + 19 + 57 + 18, b"\x06", "TABLE_MAP events of .* have a head of 6 bytes instead of 8: logs of MySQL 5.0"),
    ],
)
def test_logs_of_old_servers_are_refused_in_words(tmp_path: Path, at: int, value: bytes, words: str) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(format_event(log_of(1), at, value))
    with pytest.raises(BinlogError, match=words):
        lines(path)


def test_a_version_without_numbers_is_not_taken_for_an_old_one(tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(format_event(log_of(1), 4 + 19 + 2, b"MariaDB-of-ours".ljust(50, b"\0")))
    assert len(lines(path)) == 1


@pytest.mark.parametrize(
    ("name", "head"), [("binlog-000000.ibb", b"\0" * 16384), ("binlog.000001", b"\xfe\xfe\x0d\x01")]
)
def test_a_log_in_innodb_is_refused_in_words(tmp_path: Path, name: str, head: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(head)
    with pytest.raises(BinlogError, match="MariaDB keeps in InnoDB's pages"):
        lines(path)
