"""Programs of unpacked packages, run on the loader and the libraries beside them."""

from pathlib import Path

import pytest

from penstock.errors import ServerStartError
from penstock.testing import PackageFolder


def file(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def test_a_program_runs_by_the_folders_own_loader_and_libraries(tmp_path: Path) -> None:
    file(tmp_path / "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")
    file(tmp_path / "usr/lib/x86_64-linux-gnu/libssl.so.3")
    file(tmp_path / "usr/sbin/mysqld")

    command = PackageFolder(tmp_path).command_for("usr/sbin/mysqld")

    libraries = f"{tmp_path}/usr/lib/x86_64-linux-gnu:{tmp_path}/lib/x86_64-linux-gnu"
    assert command == [
        f"{tmp_path}/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
        "--library-path",
        libraries,
        f"{tmp_path}/usr/sbin/mysqld",
    ]


def test_a_release_with_one_usr_folder_is_found_too(tmp_path: Path) -> None:
    file(tmp_path / "usr/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1")
    file(tmp_path / "usr/sbin/mysqld")

    loader, _option, libraries, _program = PackageFolder(tmp_path).command_for("usr/sbin/mysqld")

    assert loader == f"{tmp_path}/usr/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1"
    assert libraries == f"{tmp_path}/usr/lib/aarch64-linux-gnu"


def test_a_missing_program_is_an_error_that_names_the_folder(tmp_path: Path) -> None:
    file(tmp_path / "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")

    with pytest.raises(ServerStartError, match=f"{tmp_path} has no usr/sbin/mysqld"):
        PackageFolder(tmp_path).command_for("usr/sbin/mysqld")
