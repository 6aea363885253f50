"""Real servers for tests and for `penstock demo`: private, on loopback, gone when this process is gone."""

from penstock.testing.apt import PackageFolder, unpack_packages
from penstock.testing.cache import Report, build_once, cache_folder, has_folder, lock_folder
from penstock.testing.database import DatabaseServer, OptionValue
from penstock.testing.mariadb import MariaDB, MariaDBInstallation, unpack_mariadb
from penstock.testing.process import ServerProcess, free_port, poll_until
from penstock.testing.server import PrivateServer

__all__ = [
    "DatabaseServer",
    "MariaDB",
    "MariaDBInstallation",
    "OptionValue",
    "PackageFolder",
    "PrivateServer",
    "Report",
    "ServerProcess",
    "build_once",
    "cache_folder",
    "free_port",
    "has_folder",
    "lock_folder",
    "poll_until",
    "unpack_mariadb",
    "unpack_packages",
]
