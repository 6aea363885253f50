"""How servers are written: one, a list, or the ZooKeeper that knows the running one."""

import pickle

import pytest

from penstock.client import ServerAddress
from penstock.config import FlightSettings, RunningSettings
from penstock.coordinate.canal import MemberNode, RunningNode
from penstock.errors import ConfigurationError
from penstock.server.cluster import published_flight_url

EVERYWHERE = "0.0.0.0"  # noqa: S104 - nothing is bound


@pytest.mark.parametrize(
    ("server", "urls"),
    [
        ("127.0.0.1:11115", ["grpc://127.0.0.1:11115"]),
        ("grpc://cdc1:11115/", ["grpc://cdc1:11115"]),
        ("grpc+tcp://cdc1:11115", ["grpc://cdc1:11115"]),
        ("grpcs://cdc1:11115", ["grpc+tls://cdc1:11115"]),
        ("[::1]:11115", ["grpc://[::1]:11115"]),
        ("::1:11115", ["grpc://[::1]:11115"]),
        ("cdc1:11115, cdc2:11116", ["grpc://cdc1:11115", "grpc://cdc2:11116"]),
        ("grpc+tls://cdc1:11115,cdc2:11115", ["grpc+tls://cdc1:11115", "grpc+tls://cdc2:11115"]),
        ("cdc1:11115,grpc+tls://cdc2:11115", ["grpc://cdc1:11115", "grpc+tls://cdc2:11115"]),
        ("cdc1:11115,cdc1:11115", ["grpc://cdc1:11115"]),
    ],
)
def test_servers_are_named_one_after_the_other(server: str, urls: list[str]) -> None:
    address = ServerAddress(server)
    assert list(address.urls) == urls
    assert address.zookeeper == ""


def test_a_file_of_certificates_makes_a_list_tls() -> None:
    assert ServerAddress("a:1,b:2", tls_ca="ca.pem").urls == ("grpc+tls://a:1", "grpc+tls://b:2")
    assert ServerAddress("grpc://a:1", tls_ca="ca.pem").urls == ("grpc://a:1",)


@pytest.mark.parametrize(
    "server",
    [
        "",
        "cdc1",
        "cdc1:",
        ":11115",
        "cdc1:port",
        "http://cdc1:11115",
        "://cdc1:1",
        "cdc1:1,",
        "a:1;b:1",
        "a:1 b:1",
        "u@a:1",
    ],
)
def test_what_is_no_server_is_refused_with_the_ways_to_write_one(server: str) -> None:
    with pytest.raises(ConfigurationError, match=r"HOST:PORT.*zookeeper://") as told:
        _ = ServerAddress(server).urls
    assert repr(server) in str(told.value)


@pytest.mark.parametrize(
    ("server", "hosts"),
    [
        ("zookeeper://zk1", "zk1"),
        ("zookeeper://zk1:2181", "zk1:2181"),
        ("zookeeper://zk1:2181,zk2:2181/", "zk1:2181,zk2:2181"),
        ("zookeeper://zk1:2181,[::1]:2181/prod/cdc", "zk1:2181,[::1]:2181/prod/cdc"),
    ],
)
def test_zookeeper_is_written_as_in_the_settings_of_servers(server: str, hosts: str) -> None:
    assert ServerAddress(server).zookeeper == hosts
    assert ServerAddress.from_zookeeper(hosts) == ServerAddress(f"zookeeper://{hosts}")
    assert ServerAddress.from_zookeeper(server) == ServerAddress(server)


@pytest.mark.parametrize("server", ["zookeeper://", "zookeeper://a:b", "zookeeper://a:1,,b:1", "zookeeper://a:1//x"])
def test_what_is_no_zookeeper_is_refused(server: str) -> None:
    with pytest.raises(ConfigurationError, match="not a ZooKeeper address"):
        _ = ServerAddress(server).zookeeper


def test_the_folder_of_canal_is_no_chroot() -> None:
    with pytest.raises(ConfigurationError, match="leave /otter/canal out"):
        _ = ServerAddress("zookeeper://zk1:2181/otter/canal").zookeeper


def test_an_address_goes_to_other_processes_and_never_shows_its_token() -> None:
    for server in ("a:1,b:1", "zookeeper://zk1:2181"):
        address = ServerAddress(server, "secret-token", "ca.pem")
        assert pickle.loads(pickle.dumps(address)) == address  # noqa: S301 - our own
        assert "secret-token" not in repr(address) + str(address)


def test_who_asks_for_tls_does_not_send_a_token_without_it() -> None:
    address = ServerAddress("zookeeper://zk1:2181", "secret-token", "ca.pem")
    assert address.check_published("grpc+tls://a:1") == "grpc+tls://a:1"
    with pytest.raises(ConfigurationError, match="a:1, which ZooKeeper at zk1:2181 names, does not speak TLS"):
        address.check_published("grpc://a:1")
    with pytest.raises(ConfigurationError, match="not the URL of a server"):
        address.check_published("file:///etc/passwd")


# -- what a server publishes


@pytest.mark.parametrize(
    ("host", "scheme", "running", "url"),
    [
        ("127.0.0.1", "grpc", {}, "grpc://127.0.0.1:11115"),
        ("cdc1", "grpc+tls", {"address": "public:11111"}, "grpc+tls://cdc1:11115"),
        (EVERYWHERE, "grpc+tls", {"address": "public:11111"}, "grpc+tls://public:11115"),
        (EVERYWHERE, "grpc", {"address": "a:1", "flight_address": "nat:7"}, "grpc://nat:7"),
        ("::1", "grpc", {}, "grpc://[::1]:11115"),
        ("::", "grpc", {"address": "[fd00::1]:11111"}, "grpc://[fd00::1]:11115"),
    ],
)
def test_a_server_publishes_where_others_reach_its_flight(
    host: str, scheme: str, running: dict[str, str], url: str
) -> None:
    flight = FlightSettings.model_validate({"host": host, "tokens": {"a": "b"}})
    assert published_flight_url(flight, scheme, 11115, RunningSettings.model_validate(running)) == url
    assert MemberNode.from_bytes(MemberNode(url).to_bytes()) == MemberNode(url)


def test_a_server_on_every_address_publishes_one() -> None:
    flight = FlightSettings.model_validate({"host": EVERYWHERE, "tokens": {"a": "b"}})
    url = published_flight_url(flight, "grpc", 11115, RunningSettings())
    assert EVERYWHERE not in url
    assert ServerAddress(url).urls == (url,)


@pytest.mark.parametrize("raw", [b"", b"x", b"[]", b"null", b"{}", RunningNode("a:1").to_bytes()])
def test_the_node_of_a_canal_server_has_no_flight(raw: bytes) -> None:
    assert MemberNode.from_bytes(raw).flight_url == ""
