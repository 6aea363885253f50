"""MariaDB, twice: the machine's own release or Debian's, and the newest one from Debian's development release.

Invariant: `penstock.testing` does the work, as it does for users; the first is the same program that the demo runs.
"""

from pathlib import Path
from typing import Any

from penstock.errors import ServerStartError
from penstock.testing import MariaDB, MariaDBInstallation, Report, cache_folder, unpack_mariadb
from tests.services.service import CachedService, ServerService


class MariaDBService(ServerService):
    """The machine's own MariaDB, or Debian's."""

    name = "mariadb"

    def find(self, cache: Path) -> Path | None:
        installation = MariaDBInstallation.find(cache)
        return Path(installation.program[-1]) if installation else None

    def fetch(self, cache: Path, report: Report) -> Path:
        return Path(MariaDBInstallation.fetch(report, cache).program[-1])

    def server(self, folder: Path, **settings: Any) -> MariaDB:
        installation = MariaDBInstallation.find(cache_folder())
        if installation is None:
            raise ServerStartError(
                f"no MariaDB on this machine or in {cache_folder()}: run `make services ONLY=mariadb`"
            )
        return MariaDB(installation, folder, **settings)


class NewestMariaDBService(CachedService):
    """MariaDB 11.8 or later from Debian's sid, whose events inside a transaction have no end position."""

    name = "mariadb11"
    folder_name = "mariadb-11"

    def download(self, target: Path, cache: Path, report: Report) -> None:  # noqa: ARG002 - needs nothing from there
        unpack_mariadb(target, report, suite="sid")

    def server(self, folder: Path, **settings: Any) -> MariaDB:
        home = self.require()
        installation = MariaDBInstallation.find_unpacked(home)
        if installation is None:
            raise ServerStartError(f"{home} has no usable MariaDB: remove the folder to fetch it again")
        return MariaDB(installation, folder, **settings)
