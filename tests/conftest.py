"""The servers as fixtures: started on first use, shared by the whole run, gone at its end.

Invariant: a server that has not been fetched is an error that says how to fetch it, never a skipped test. A test that
uses a server carries the marker of that name without being asked to.
"""

import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from penstock.testing import DatabaseServer, MariaDB, PrivateServer
from tests.services import SERVICES
from tests.services.elasticsearch import Elasticsearch
from tests.services.mysql import MySQL
from tests.services.opensearch import OpenSearch
from tests.services.service import ServerService
from tests.services.zookeeper import ZooKeeper
from tests.support.campaign import allow_time, select
from tests.support.order import Distribution
from tests.support.server_folders import VARIABLE, fill_data_folder, run_folder
from tests.support.spark_session import spark, write_spark_defaults

__all__ = ["spark"]

# Tests start Python hundreds of times: without compiled modules each start takes a second longer.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Machines are noisy and kernels compile on first use: no example is too slow.
settings.register_profile("penstock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("penstock")

CAMPAIGN_TIMEOUT_S = 1200
"""For one long form, unless `--timeout` says otherwise."""

StartServer = Callable[..., Any]
NewDatabase = Callable[[DatabaseServer], str]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--campaign", action="store_true", help="run the long forms of tests, and nothing else")


def pytest_configure(config: pytest.Config) -> None:
    """Make the folder for the servers' data, once for a run and all of its workers."""
    config.pluginmanager.register(Distribution())
    if VARIABLE not in os.environ:
        stack = ExitStack()
        stack.callback(os.environ.pop, VARIABLE, None)
        folder = stack.enter_context(run_folder())
        os.environ[VARIABLE] = str(folder)
        if not config.getoption("--campaign"):
            stack.callback(os.environ.pop, "SPARK_CONF_DIR", None)
            os.environ["SPARK_CONF_DIR"] = str(write_spark_defaults(folder))
        config.add_cleanup(stack.close)


# Before pytest's own hook, which applies `-m` to the markers it finds.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items[:], left_out = select(items, is_campaign=config.getoption("--campaign"))
    config.hook.pytest_deselected(items=left_out)
    if config.getoption("--campaign"):
        allow_time(items, config.getoption("timeout") or CAMPAIGN_TIMEOUT_S)
    for item in items:
        used = set(getattr(item, "fixturenames", ()))
        if "request" in used:
            # A parameter can name a fixture that is then asked for with `request.getfixturevalue`.
            parameters = getattr(getattr(item, "callspec", None), "params", {})
            used |= {value for value in parameters.values() if isinstance(value, str)}
        for name in SERVICES.keys() & used:
            item.add_marker(name)


@pytest.fixture(scope="session")
def start_shared_server() -> Iterator[StartServer]:
    with _servers() as start:
        yield start


@pytest.fixture(scope="module")
def module_server() -> Iterator[StartServer]:
    """Start a server that the tests of one module share; each test restores what it changes."""
    with _servers() as start:
        yield start


@pytest.fixture
def private_server() -> Iterator[StartServer]:
    """Start a server that this test alone uses and may stop, kill or misconfigure.

    `private_server("mariadb", options={"binlog_format": "STATEMENT"})`; the test marks itself with the server's name.
    """
    with _servers() as start:
        yield start


@pytest.fixture
def database() -> Iterator[NewDatabase]:
    """Create a database with a name of its own: `name = database(mariadb)`; it is dropped after the test."""
    made: list[tuple[DatabaseServer, str]] = []

    def create(server: DatabaseServer) -> str:
        name = f"test_{secrets.token_hex(4)}"
        _execute(server, f"CREATE DATABASE `{name}`")
        made.append((server, name))
        return name

    yield create
    for server, name in made:
        if server.pid is not None:
            _execute(server, f"DROP DATABASE IF EXISTS `{name}`")


@pytest.fixture(scope="session")
def mariadb(start_shared_server: StartServer) -> MariaDB:
    return start_shared_server("mariadb")


@pytest.fixture(scope="session")
def mariadb11(start_shared_server: StartServer) -> MariaDB:
    return start_shared_server("mariadb11")


@pytest.fixture(scope="session")
def mysql57(start_shared_server: StartServer) -> MySQL:
    return start_shared_server("mysql57")


@pytest.fixture(scope="session")
def mysql80(start_shared_server: StartServer) -> MySQL:
    return start_shared_server("mysql80")


@pytest.fixture(scope="session")
def mysql9(start_shared_server: StartServer) -> MySQL:
    return start_shared_server("mysql9")


@pytest.fixture(scope="session")
def opensearch(start_shared_server: StartServer) -> OpenSearch:
    return start_shared_server("opensearch")


@pytest.fixture(scope="session")
def elasticsearch(start_shared_server: StartServer) -> Elasticsearch:
    return start_shared_server("elasticsearch")


@pytest.fixture(scope="session")
def zookeeper(start_shared_server: StartServer) -> ZooKeeper:
    return start_shared_server("zookeeper")


@pytest.fixture(scope="session")
def chromium() -> Path:
    """The browser's executable."""
    return SERVICES["chromium"].require()


@contextmanager
def _servers() -> Iterator[StartServer]:
    """A function that starts servers; all of them end, and their data goes, when the block ends."""
    with ExitStack() as stack:
        # Not pytest's temporary folder: that one is closed to the user some servers run as.
        run = Path(os.environ[VARIABLE])
        folder = run / secrets.token_hex(6)
        folder.mkdir()
        stack.callback(shutil.rmtree, folder)

        def start(name: str, **settings: Any) -> PrivateServer:
            service = SERVICES[name]
            assert isinstance(service, ServerService)
            server = service.server(folder / f"{name}-{secrets.token_hex(2)}", **settings)
            if isinstance(server, DatabaseServer):
                fill_data_folder(server, name, run)
            # The data is thrown away, so nothing is gained by an orderly shutdown.
            stack.callback(server.kill)
            return server.start()

        yield start


def _execute(server: DatabaseServer, statement: str) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(statement)
