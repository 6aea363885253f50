"""What a person or a script meets at the command line of `penstock binlog`."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks._orders_log import repeated, sample
from penstock.errors import BinlogError, ConfigurationError
from tests.support.shop_log import PRODUCT, binlog, shop_log, shown, written
from tests.support.xa_log import note, note_rows, xa_outcome, xa_rows
from tests.twins.event import MAGIC
from tests.twins.log import LogWriter
from tests.twins.row import INSERT

PENSTOCK = Path(sys.executable).with_name("penstock")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return written(shop_log(), tmp_path)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    log = LogWriter().open()
    log.begin()
    log.map(7, PRODUCT)
    for event in range(40):
        log.rows(INSERT, 7, PRODUCT, [[event * 500 + i, "n" * 190, None] for i in range(500)])
    log.commit()
    return written(log, tmp_path_factory.mktemp("large"))


def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [PENSTOCK, "binlog", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_help_comes_without_the_heavy_libraries() -> None:
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom penstock.cli import app\n"
        "result = CliRunner().invoke(app, ['binlog', '--help'])\nassert 'Examples' in result.stdout\n"
        "print(*sorted({'numba', 'pyarrow', 'numpy', 'pymysql'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == [], done.stdout + done.stderr


@pytest.mark.parametrize("options", [["--stats"], ["--flashback"], ["--output", "sql"], ["--output", "text"], []])
def test_files_need_neither_pandas_nor_a_driver(tmp_path: Path, options: list[str]) -> None:
    log = shop_log()
    log.begin()
    note(log, b"a statement, \xff")
    note_rows(log, "its rows")
    log.commit()
    xa_rows(log, b"x", [[9, "nine", None]])
    xa_outcome(log, "COMMIT", b"x")
    path = written(log, tmp_path)
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom penstock.cli import app\n"
        "result = CliRunner().invoke(app, ['binlog', *sys.argv[1:]], catch_exceptions=False)\n"
        "print(result.exit_code, *sorted({'pandas', 'pymysql', 'orjson'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code, path, *options], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["0"], done.stdout + done.stderr


@pytest.mark.parametrize("kind", ["json", "sql"])
def test_a_small_log_is_read_without_what_takes_long_to_load(log: Path, kind: str) -> None:
    """The command as a user starts it."""
    run(log, "--output", kind)  # the kernels are compiled by now
    heavy = {"numba", "llvmlite", "pydantic", "yaml", "pandas", "pymysql", "rich", "pyarrow.parquet", "http"}
    heavy |= {"pyarrow.compute", "importlib.metadata", "email", "tempfile"}
    code = (
        "import atexit, sys\nfrom penstock.cli import main\n"
        f"atexit.register(lambda: print(*sorted({heavy!r} & sys.modules.keys()), file=sys.stderr))\n"
        "main()"
    )
    command = [sys.executable, "-c", code, "binlog", str(log), "--output", kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout
    assert done.stderr.split() == []


@pytest.mark.parametrize("kind", ["json", "sql"])
def test_memory_does_not_grow_with_the_log(tmp_path: Path, kind: str) -> None:
    """The log is many times as large as what is read at once."""
    path = tmp_path / "binlog.000001"
    path.write_bytes(MAGIC + repeated(sample(), 60_000_000)[0].tobytes())
    code = (
        "import atexit, sys\nfrom penstock.cli import main\n"
        "peak = lambda: next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1]\n"
        "atexit.register(lambda: print(peak(), file=sys.stderr))\nmain()"
    )
    command = [sys.executable, "-c", code, "binlog", str(path), "--output", kind]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    assert int(done.stderr) < 200_000, "KB"


def test_a_reader_that_has_seen_enough_ends_it_quietly(large: Path) -> None:
    with subprocess.Popen([PENSTOCK, "binlog", large], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"{")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(120) == 0


def test_a_terminal_gets_lines_for_people_in_colours(log: Path) -> None:
    screen, terminal = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    process = subprocess.Popen([PENSTOCK, "binlog", log, "--limit", "1"], stdout=terminal, env=environment)
    assert process.wait(120) == 0
    os.close(terminal)
    text = os.read(screen, 10_000).decode()
    os.close(screen)
    assert "\x1b[32mINSERT\x1b[0m shop.product  id=1  name='kettle'" in text


def test_several_files_and_the_input(log: Path, tmp_path: Path) -> None:
    second = written(shop_log(), tmp_path, "binlog.000002")
    files = [json.loads(line)["file"] for line in shown(log, second).splitlines()]
    assert files == ["binlog.000001"] * 7 + ["binlog.000002"] * 7
    with log.open("rb") as file:
        done = subprocess.run([PENSTOCK, "binlog", "-"], stdin=file, capture_output=True, text=True, check=False)
    assert len(done.stdout.splitlines()) == 7, done.stderr


def test_a_file_without_a_number_counts_as_the_first(log: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.bin"
    copy.write_bytes(log.read_bytes())
    assert json.loads(shown(copy).splitlines()[-1])["file"] == "copy.bin.0"
    shown(copy, "--output", "parquet", "--to", tmp_path / "parquet")


@pytest.mark.parametrize(
    ("options", "tables"),
    [
        (["--since", "2023-11-14 22:14:20"], ["product", "note"]),
        (["--since", "2023-11-14 22:14:20", "--until", "2023-11-14 22:15:20"], ["product"]),
        (["--until", "2023-11-14T22:13:21Z"], [None, "product", "product", "note", "product"]),
        (["--since", "5-1-3"], ["product", "note"]),
        (["--since", "5-1-2,7-1-1"], ["product", "note"]),
        (["--table", "SHOP[.]note"], ["note", "note"]),
        (
            ["--table", "shop.note", "--table", ".*product"],
            [None, "product", "product", "note", "product", "product", "note"],
        ),
        (["--table", "product"], "no table"),
    ],
)
def test_picking(log: Path, options: list[str], tables: list[str | None] | str) -> None:
    if isinstance(tables, str):
        with pytest.raises(ConfigurationError, match=rf"{tables}.*shop\.note, shop\.product"):
            binlog(log, *options)
        return
    lines = [json.loads(line) for line in shown(log, *options).splitlines()]
    assert [line.get("table", "shop.").partition(".")[2] or None for line in lines] == tables


def test_positions(log: Path) -> None:
    changes = [json.loads(line) for line in shown(log).splitlines()]
    update = next(change for change in changes if change["type"] == "update")
    position = f"binlog.000001:{update['pos']}"
    after = [json.loads(line)["type"] for line in shown(log, "--since", position).splitlines()]
    before = [json.loads(line)["type"] for line in shown(log, "--until", position).splitlines()]
    assert after == ["update", "delete"]
    assert before == ["ddl", "insert", "insert", "insert", "insert"]
    assert shown(log, "--until", "binlog.000000:4") == ""
    with pytest.raises(ConfigurationError, match="after the last of these files"):
        binlog(log, "--since", "binlog.000002:4")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["/nowhere/binlog.000001"], "there is no file /nowhere/binlog.000001"),
        (["."], "is a folder"),
        ([], "name log files, or a server with --host"),
        (["LOG", "--since", "whenever"], "'whenever' is not a position in a log"),
        (["LOG", "--since", "5-1-99"], "5-1-99 is not in this log"),
        (["LOG", "--until", "5-1-2"], "--until takes a time or a position"),
        (["LOG", "--table", "("], "is no regular expression"),
        (["LOG", "--output", "xml"], "text, json, sql, csv, arrow, parquet"),
        (["LOG", "--stats", "--output", "sql"], "text, json"),
        (["LOG", "--stats", "--verify"], "exclude each other"),
        (["LOG", "--follow"], "--follow goes with --host"),
        (["--host", "127.0.0.1"], "say where to begin with --since"),
        (["--host", "127.0.0.1", "--verify"], "--verify reads files"),
    ],
)
def test_mistakes_are_said_in_one_line(log: Path, options: list[str], words: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        binlog(*(log if option == "LOG" else option for option in options))
    assert words in str(error.value)


def test_what_is_no_binlog(tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    for content, words in (
        (b"", "is no binlog: it is empty"),
        (b"\x89PNG....", "is no binlog: it begins with 89 50 4e 47"),
        (b"\xfdbin....", "is encrypted"),
    ):
        path.write_bytes(content)
        with pytest.raises(BinlogError, match=words):
            binlog(path)
        verified = binlog(path, "--verify")
        assert verified.exit_code == 1
        assert words in verified.stdout


def test_a_file_that_was_cut_gives_what_is_before(log: Path) -> None:
    whole = shown(log).splitlines()
    log.write_bytes(log.read_bytes()[:-5])
    result = binlog(log)
    assert result.stdout.splitlines() == whole
    assert "ends inside an event" in result.stderr
    verified = binlog(log, "--verify")
    assert verified.exit_code == 1
    assert "the file ends inside this event" in verified.stdout


def test_a_broken_event_is_found(log: Path) -> None:
    raw = bytearray(log.read_bytes())
    change = json.loads(shown(log).splitlines()[-1])
    raw[change["pos"] + 25] ^= 1
    log.write_bytes(raw)
    verified = binlog(log, "--verify")
    assert verified.exit_code == 1
    assert f"binlog.000001:{change['pos']} DELETE_ROWS_V1: the event does not match its checksum" in verified.stdout
    done = run(log)
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 6
    assert done.stderr.count("\n") == 1
    assert f"binlog.000001:{change['pos']}" in done.stderr
    assert binlog(log, "--no-verify").exit_code == 0


def test_verifying_counts_events(log: Path) -> None:
    events, at, raw = 0, len(MAGIC), log.read_bytes()
    while at < len(raw):
        events, at = events + 1, at + int.from_bytes(raw[at + 9 : at + 13], "little")
    assert f"{events} events" in shown(log, "--verify")
    assert "whole, checksums match" in shown(log, "--verify")


def test_statistics_for_people(log: Path) -> None:
    text = shown(log, "--stats")
    assert "6 rows in 4 transactions; statements: 1;" in text.replace(", 0 rows/s", "")
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("shop.product"))
    assert [line.split()[-2:] for line in lines[at : at + 3]] == [["4", "2"], ["3", "1"], ["1", "1"]]
    assert [line.split()[0] for line in lines[at + 1 : at + 3]] == ["insert", "update"]
    sizes = [int(line.split()[-4]) for line in lines[at : at + 3]]
    assert sizes[0] == sizes[1] + sizes[2]
    assert any(line.startswith("2023-11-14 22:13:20  ████") and line.endswith(" 4") for line in lines)


def test_the_help_names_the_privileges_of_the_handbook() -> None:
    help_text = " ".join(run("--help").stdout.replace("│", " ").split())
    assert "REPLICATION SLAVE and REPLICATION CLIENT" in help_text
    assert "LOCK TABLES" not in help_text
