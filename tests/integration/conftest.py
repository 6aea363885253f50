"""What tests of several files ask for, besides servers: a name in ZooKeeper, and clients that are not ours."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient

from tests.services.canal_client import JAVA_CLIENT, Driver
from tests.services.zookeeper import ZooKeeper


@pytest.fixture
def destination() -> str:
    """A name that no other test has."""
    return f"d{secrets.token_hex(4)}"


@pytest.fixture
def canal(zookeeper: ZooKeeper) -> Iterator[Any]:
    """ZooKeeper as canal sees it, or an operator."""
    client = KazooClient(zookeeper.hosts)
    client.start()
    yield client
    client.stop()
    client.close()


@pytest.fixture
def java() -> Iterator[Driver]:
    """canal's own client, in Java."""
    with Driver(JAVA_CLIENT.quick_command()) as driver:
        yield driver
