"""Folders of the download cache: complete or absent, whoever else is at it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.errors import ServerStartError
from penstock.testing import build_once, cache_folder


def silent(_line: str) -> None: ...


def test_a_folder_is_built_once(tmp_path: Path) -> None:
    built: list[Path] = []

    def build(folder: Path) -> None:
        built.append(folder)
        (folder / "file").write_text("whole")

    assert build_once(tmp_path / "cache/server", build, silent) == tmp_path / "cache/server"
    build_once(tmp_path / "cache/server", build, silent)

    assert len(built) == 1
    assert (tmp_path / "cache/server/file").read_text() == "whole"


def test_a_failed_build_leaves_no_folder_behind(tmp_path: Path) -> None:
    def build(folder: Path) -> None:
        (folder / "half").touch()
        raise ServerStartError("the network is gone")

    with pytest.raises(ServerStartError, match="network"):
        build_once(tmp_path / "server", build, silent)

    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_what_a_killed_run_left_is_not_taken_for_a_part(tmp_path: Path) -> None:
    (tmp_path / ".server.partial").mkdir()
    (tmp_path / ".server.partial/half").touch()

    build_once(tmp_path / "server", lambda folder: (folder / "file").touch(), silent)

    assert [path.name for path in (tmp_path / "server").iterdir()] == ["file"]


def test_two_runs_at_once_build_it_once_and_the_second_says_that_it_waits(tmp_path: Path) -> None:
    built: list[Path] = []
    second_waits = threading.Event()

    def build(folder: Path) -> None:
        built.append(folder)
        assert second_waits.wait(timeout=30)

    def report(line: str) -> None:
        assert "server" in line
        second_waits.set()

    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(build_once, tmp_path / "server", build, report) for _ in range(2)]
        assert [run.result() for run in runs] == [tmp_path / "server"] * 2

    assert len(built) == 1


def test_the_cache_folder_is_what_the_environment_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"

    monkeypatch.delenv("PENSTOCK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "penstock"

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home/.cache/penstock"


def test_a_cache_folder_that_cannot_be_created_is_an_error_that_names_the_variable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ServerStartError, match="PENSTOCK_CACHE"):
        build_once(tmp_path / "file/cache/server", lambda _folder: None, silent)
