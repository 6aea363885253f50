"""MariaDB: `penstock.testing` does the work, as it does for users.

Invariant: the same program that the demo would run.
"""

from pathlib import Path
from typing import Any

from penstock.errors import ServerStartError
from penstock.testing import Installation, MariaDB, Report, cache_folder
from tests.services.service import ServerService


class MariaDBService(ServerService):
    """The machine's own MariaDB, or Debian's."""

    name = "mariadb"

    def find(self, cache: Path) -> Path | None:
        installation = Installation.find(cache)
        return Path(installation.program[-1]) if installation else None

    def fetch(self, cache: Path, report: Report) -> Path:
        return Path(Installation.fetch(report, cache).program[-1])

    def server(self, folder: Path, **settings: Any) -> MariaDB:
        installation = Installation.find(cache_folder())
        if installation is None:
            raise ServerStartError(
                f"no MariaDB on this machine or in {cache_folder()}: run `make services ONLY=mariadb`"
            )
        return MariaDB(installation, folder, **settings)
