"""Where a server listens, whom it lets in, and what it says when that is not safe."""

import hashlib
from typing import Any

import pytest
from pydantic import ValidationError

from penstock.config import ServerSettings
from penstock.config.destination_list import MAX_DESTINATIONS, expand_destinations
from penstock.errors import ConfigurationError

HASH = "e3619321c1a937c46a0d8bd1dac39f93b27d4458"  # of the password canal


def of(**given: Any) -> ServerSettings:
    return ServerSettings.model_validate(given)


def test_by_default_only_this_machine_is_served() -> None:
    settings = of()
    assert (settings.flight.host, settings.flight.port) == ("127.0.0.1", 11115)
    assert (settings.canal.host, settings.canal.port, settings.canal.frame_limit) == ("127.0.0.1", 11111, 16 << 20)
    assert (settings.admin.host, settings.admin.port) == ("127.0.0.1", 11112)
    assert settings.canal_admin.port is None
    assert settings.address == "127.0.0.1:11111"
    assert of(running={"address": "db-cdc-1:11111"}).address == "db-cdc-1:11111"


def test_what_others_reach() -> None:
    anywhere = "0.0.0.0"  # noqa: S104
    settings = of(
        flight={"host": anywhere, "tokens": {"spark": "t0ken"}, "tls_cert": "a.pem", "tls_key": "b.pem"},
        canal={"host": anywhere, "allow_anonymous": True},
        admin={"host": anywhere, "token": "t0ken"},
        canal_admin={"port": 11110, "user": "admin", "password": "s3cret"},
    )
    assert "t0ken" not in repr(settings)
    assert "s3cret" not in repr(settings)
    assert of(canal={"host": anywhere, "password": "s3cret"}).canal.allow_anonymous is False
    assert of(canal={"host": anywhere, "port": None}).canal.port is None


def test_a_password_is_kept_as_canal_keeps_it() -> None:
    assert of(canal={"user": "canal", "password_hash": HASH.upper()}).canal.stored_hash == bytes.fromhex(HASH)
    assert of(canal={"user": "canal", "password": "canal"}).canal.stored_hash == bytes.fromhex(HASH)
    assert of().canal.stored_hash is None
    assert hashlib.sha1(hashlib.sha1(b"canal").digest()).hexdigest() == HASH  # noqa: S324


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"flight": {"host": "10.0.0.1"}}, "10.0.0.1 is no loopback address: set tokens for those who may call"),
        ({"flight": {"host": "::"}}, "no loopback address"),
        ({"flight": {"host": "db1"}}, "no loopback address"),
        ({"flight": {"tls_cert": "a.pem"}}, "tls_cert and tls_key go together"),
        ({"flight": {"tokens": {"spark": ""}}}, "the token of spark is empty"),
        ({"canal": {"host": "10.0.0.1"}}, "set password, or allow_anonymous: true"),
        ({"canal": {"user": "canal"}}, "the user canal has no password"),
        ({"canal": {"password": "a", "password_hash": HASH}}, "either password or password_hash"),
        ({"canal": {"password_hash": "s3cret"}}, "40 hex digits"),
        ({"admin": {"host": "10.0.0.1"}}, "set a token"),
        ({"canal_admin": {"port": 11110}}, "needs a password"),
        ({"manager": {"url": "ftp://x", "password": "a"}}, "http://host:port"),
        ({"manager": {"url": "http://u:s3cret@x", "password": "a"}}, "user and password beside it"),
        ({"manager": {"url": "http://x"}}, "canal-admin needs a password"),
        ({"running": {"address": "somewhere"}}, "running.address"),
        ({"destinations": ["shop{10-1}"]}, "is empty, or longer"),
        ({"destinations": ["shop{a}"]}, r"write it as shop\{1-10\}"),
        ({"port": 11115}, "Extra inputs are not permitted"),
    ],
)
def test_mistakes(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words) as raised:
        of(**given)
    assert "s3cret" not in str(raised.value)


def test_lists_of_destinations() -> None:
    assert of().destinations is None
    assert of(destinations="shop{8-11}, crm").destinations == ("shop8", "shop9", "shop10", "shop11", "crm")
    assert of(destinations=["a", "db{1-2}_x", "a"]).destinations == ("a", "db1_x", "db2_x")
    assert of(destinations=[]).destinations == ()
    assert len(expand_destinations([f"a{{1-{MAX_DESTINATIONS}}}"])) == MAX_DESTINATIONS


def test_an_instance_by_its_name() -> None:
    settings = of(instances=[{"destination": "a"}])
    assert settings.instance("a") is settings.instances[0]
    with pytest.raises(ConfigurationError, match="no instance 'b'; there is: a"):
        settings.instance("b")


def test_members_of_groups_are_instances() -> None:
    members = {"east": {"source": {"host": "a"}}, "west": {"source": {"host": "b"}, "data_dir": "/else"}}
    settings = of(
        data_dir="/data", zookeeper="zk:2181", instances=[{"destination": "a"}],
        groups=[{"destination": "all", "members": members}],
    )  # fmt: skip
    assert [instance.destination for instance in settings.all_instances] == ["a", "all.east", "all.west"]
    east, west = settings.instance("all.east"), settings.instance("all.west")
    assert (str(east.data_dir), str(west.data_dir), west.source.address) == ("/data", "/else", "b:3306")
    assert east.zookeeper is None
    assert [*settings.without_instances.groups[0].members] == ["east", "west"]
    assert settings.without_instances == settings.model_copy(update={"instances": ()}).without_instances


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"groups": [{"destination": "a", "members": {"x": {}}}]}, "two of the destination a"),
        ({"groups": [{"destination": "g", "members": {"x": {"zookeeper": "zk:1"}}}]}, "x of g would be elected"),
        ({"groups": [{"destination": "g", "members": {"x": {"canal": {"gtids": True}}}}]}, "who see the group"),
        ({"groups": [{"destination": "g", "members": []}]}, "groups.0.members"),
        ({"groups": {}}, "groups"),
        (
            {"groups": [{"destination": "g", "members": {"x": {}}}], "manager": {"url": "http://x", "password": "a"}},
            "knows no groups",
        ),
    ],
)
def test_mistakes_of_groups(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        of(instances=[{"destination": "a"}], **given)


def test_every_setting_is_described() -> None:
    def sections(schema: dict[str, Any]) -> list[dict[str, Any]]:
        return [schema, *schema["$defs"].values()]

    for section in sections(ServerSettings.model_json_schema()):
        for name, description in section.get("properties", {}).items():
            assert description.get("description"), f"{section['title']}.{name}"
