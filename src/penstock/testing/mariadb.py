"""A private MariaDB for tests and the demo: the machine's own program, else Debian's, unpacked into the cache.

Invariant: no file or running server of a machine's own MariaDB is touched; only its program may be used.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import ServerStartError
from penstock.testing.apt import PackageFolder, unpack_packages
from penstock.testing.cache import Report, build_once, cache_folder, has_folder
from penstock.testing.database import DatabaseServer, OptionValue
from penstock.testing.process import read_log_tail

OLDEST = (10, 5)
_VERSION = re.compile(r"\bVer (\d+)\.(\d+)\.\S*MariaDB")
_PACKAGES = ("mariadb-server-core", "mariadb-client-core")
# For their plugins (ed25519) and for mariadb-binlog; what else they would bring is not needed to run these.
_EXTRAS = ("mariadb-server", "mariadb-client")
# In this order; the names begin with `mysql_` or, in later releases, with `mariadb_`.
_SYSTEM_TABLES = ("*_system_tables.sql", "*_performance_tables.sql", "*_system_tables_data.sql")


@dataclass(frozen=True, slots=True)
class MariaDBInstallation:
    """A MariaDB program: how to run it, and where its share and plugin folders are.

    installation = MariaDBInstallation.find() or MariaDBInstallation.fetch(print)
    command = installation.tool_command("mariadb-binlog")
    """

    program: tuple[str, ...]
    share: Path
    plugins: Path | None

    def tool_command(self, name: str) -> list[str]:
        """Return how to run a program that came with the server, such as mariadb-binlog."""
        *loader, server = self.program
        path = Path(server).parent.parent / "bin" / name
        if not path.is_file():
            raise ServerStartError(f"{path} is missing: install the package with MariaDB's client programs")
        return [*loader, str(path)]

    @classmethod
    def find(cls, cache: Path | None = None) -> "MariaDBInstallation | None":
        """Return the machine's own installation if it is new enough and complete, else an unpacked one, else None."""
        return _find_installed() or cls.find_unpacked(_cache_target(cache))

    @classmethod
    def find_unpacked(cls, folder: Path) -> "MariaDBInstallation | None":
        """Return the MariaDB that `unpack_mariadb` put into `folder`; None if the folder has none."""
        share = _find_share_folder(folder / "usr/share")
        if share is None:
            return None
        program = PackageFolder(folder).command_for("usr/sbin/mariadbd")
        return cls(tuple(program), share, folder / "usr/lib/mysql/plugin")

    @classmethod
    def fetch(cls, report: Report, cache: Path | None = None) -> "MariaDBInstallation":
        """Return what `find` returns; if there is none, unpack Debian's packages into the cache."""
        installed = _find_installed()
        if installed:
            return installed
        if shutil.which("apt-get") is None:
            raise ServerStartError(
                f"no MariaDB server was found on this machine: install one, {'.'.join(map(str, OLDEST))} or newer"
            )
        target = _cache_target(cache)
        build_once(target, lambda folder: unpack_mariadb(folder, report), report)
        unpacked = cls.find_unpacked(target)
        if unpacked is None:
            raise ServerStartError(f"{target} has no usable MariaDB: remove the folder to fetch it again")
        return unpacked


def unpack_mariadb(folder: Path, report: Report, *, suite: str | None = None) -> None:
    """Unpack Debian's MariaDB into an existing folder: that of the machine's own release, or of another suite."""
    unpack_packages(folder, _PACKAGES, report, without_libraries=_EXTRAS, suite=suite)


class MariaDB(DatabaseServer):
    """A MariaDB that writes a row-based binary log with full metadata.

    with MariaDB(MariaDBInstallation.fetch(print), tmp_path) as server:
        connection = server.connect()
    """

    name = "MariaDB"

    def __init__(
        self,
        installation: MariaDBInstallation,
        folder: Path,
        *,
        port: int | None = None,
        options: Mapping[str, OptionValue] | None = None,
    ) -> None:
        super().__init__(folder, port=port, options=options)
        self.installation = installation

    def command(self) -> list[str]:
        """Return the server program and where its own files are."""
        share = self.installation.share
        # The first option must be --no-defaults: the machine's configuration files are not ours.
        options = ["--no-defaults", f"--lc-messages-dir={share}", f"--character-sets-dir={share / 'charsets'}"]
        if self.installation.plugins:
            options.append(f"--plugin-dir={self.installation.plugins}")
        if os.geteuid() == 0:
            options.append("--user=root")
        return [*self.installation.program, *options]

    def defaults(self) -> dict[str, OptionValue]:
        """Return MariaDB's own settings."""
        return {"binlog_row_metadata": "FULL", "innodb_log_file_size": "32M"}

    def initialise(self, data: Path) -> None:
        """Fill an empty data folder with mariadb-install-db."""
        # What mariadb-install-db does, without its help texts and its test database.
        share = self.installation.share
        scripts = [path.read_bytes() for pattern in _SYSTEM_TABLES for path in share.glob(pattern)]
        # Root with a password, not by the name of the system's user; nobody from elsewhere, no anonymous user.
        before = b"CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL, @skip_auth_anonymous = 1;\n"
        after = b"\nDELETE FROM global_priv WHERE Host <> 'localhost';\n"
        statements = before + b"\n".join(scripts) + after
        # A server that starts deletes the temporary tables in its folder for these, whosoever they are.
        options = [
            f"--datadir={data}",
            f"--tmpdir={self.folder / 'tmp'}",
            "--bootstrap",
            "--innodb-log-file-size=32M",
            "--innodb-buffer-pool-size=32M",
        ]
        with self.log.open("ab") as log:
            done = subprocess.run(  # noqa: S603 - the program that was just found or unpacked
                [*self.command(), *options],
                input=statements,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=data,
                check=False,
            )
        if done.returncode:
            raise ServerStartError(
                f"MariaDB could not create {data}; the end of {self.log}:\n{read_log_tail(self.log)}"
            )


def _cache_target(cache: Path | None) -> Path:
    """Return the cache folder for MariaDB."""
    return (cache or cache_folder()) / "mariadb"


def _find_installed() -> MariaDBInstallation | None:
    """Return the machine's own MariaDB; None if there is none that can be used."""
    # Debian keeps servers in sbin, which is not on every user's PATH.
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
    for name in ("mariadbd", "mysqld"):
        program = shutil.which(name, path=path)
        if program is not None and _is_usable(program):
            # bin/ or sbin/ or libexec/ of an installation's root, the share folder beside it.
            prefix = Path(program).resolve().parent.parent
            share = _find_share_folder(prefix / "share")
            if share is not None:
                return MariaDBInstallation((program,), share, None)
    return None


def _find_share_folder(folder: Path) -> Path | None:
    """Return the share folder of an installation."""
    candidates = (folder / "mysql", folder / "mariadb", folder)
    return next((path for path in candidates if has_folder(path) and any(path.glob(_SYSTEM_TABLES[0]))), None)


def _is_usable(program: str) -> bool:
    """Tell whether a program runs and is new enough."""
    command = [program, "--no-defaults", "--version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - found on PATH
    match = _VERSION.search(answer.stdout)
    return match is not None and (int(match[1]), int(match[2])) >= OLDEST
