"""Real servers for tests and for `penstock demo`: private, on loopback, gone when this process is gone."""

from penstock.testing.apt import PackageFolder, unpack
from penstock.testing.cache import Report, build_once, cache_folder, has_folder, locked
from penstock.testing.database import DatabaseServer, OptionValue
from penstock.testing.mariadb import Installation, MariaDB, unpack_mariadb
from penstock.testing.process import ServerProcess, free_port, poll_until
from penstock.testing.server import PrivateServer

__all__ = [
    "DatabaseServer",
    "Installation",
    "MariaDB",
    "OptionValue",
    "PackageFolder",
    "PrivateServer",
    "Report",
    "ServerProcess",
    "build_once",
    "cache_folder",
    "free_port",
    "has_folder",
    "locked",
    "poll_until",
    "unpack",
    "unpack_mariadb",
]
