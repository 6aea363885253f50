"""A server.yml beside canal.properties, and our own keys in properties: what counts, and when they disagree."""

from pathlib import Path

import pytest

from penstock.config import ConfFolder, ConfigSnapshot, ServerSettings
from penstock.config.canal.properties import read_canal_instance, read_canal_server
from penstock.errors import ConfigurationError

CANAL = "canal.ip = 127.0.0.1\ncanal.port = 21111\ncanal.metrics.pull.port = 21112\n"


def read(folder: Path, canal: str, yaml: str | None = None) -> ConfigSnapshot:
    (folder / "canal.properties").write_text(canal)
    (folder / "server.yml").unlink(missing_ok=True)
    if yaml is not None:
        (folder / "server.yml").write_text(yaml)
    return ConfFolder(folder, 0).read()


def ports(settings: ServerSettings) -> list[tuple[str, int | None]]:
    sections = (settings.flight, settings.canal, settings.admin)
    return [(section.host, section.port) for section in sections]


def test_own_keys_say_where_flight_and_admin_listen(tmp_path: Path) -> None:
    own = (
        "penstock.flight.host = 10.0.0.1\npenstock.flight.port = 21115\npenstock.flight.tokens.spark = t0ken\n"
        "penstock.flight.streams = 7\npenstock.admin.host = 10.0.0.2\npenstock.admin.token = t0ken\n"
    )
    snapshot = read(tmp_path, CANAL + own)
    assert ports(snapshot.server) == [("10.0.0.1", 21115), ("127.0.0.1", 21111), ("10.0.0.2", 21112)]
    assert snapshot.server.flight.streams == 7
    assert {name: token.get_secret_value() for name, token in snapshot.server.flight.tokens.items()} == {
        "spark": "t0ken"
    }
    assert snapshot.ignored == ()
    assert read(tmp_path, "penstock.admin.port = 3").server.admin.port == 3, "canal's default is no contradiction"


def test_own_keys_that_contradict_canals_are_refused(tmp_path: Path) -> None:
    wanted = "penstock.admin.port and canal.metrics.pull.port do not say the same: keep one of the two"
    with pytest.raises(ConfigurationError, match=wanted):
        read(tmp_path, CANAL + "penstock.admin.port = 3")
    assert read(tmp_path, CANAL + "penstock.admin.port = 21112").server.admin.port == 21112
    with pytest.raises(ConfigurationError, match=r"canal.properties: flight: .*no loopback address: set tokens"):
        read(tmp_path, "penstock.flight.host = 10.0.0.1")


def test_own_keys_come_from_the_environment_too() -> None:
    environment = {"PENSTOCK_FLIGHT_PORT": "21115", "penstock.admin.port": "21112"}
    settings = read_canal_server({}, Path("/conf"), environment).settings
    assert (settings["flight"]["port"], settings["admin"]["port"]) == (21115, 21112)


def test_a_server_yml_beside_canals_file_is_merged(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "instance.properties").write_text("canal.instance.master.address = db1")
    yaml = "flight: {port: 21115}\nadmin: {port: 21112}\ndata_dir: /data\ninstances: [{destination: crm}]\n"
    snapshot = read(tmp_path, CANAL, yaml)
    assert ports(snapshot.server) == [("127.0.0.1", 21115), ("127.0.0.1", 21111), ("127.0.0.1", 21112)]
    folders = {
        name: str(instance.settings.data_dir) for name, instance in snapshot.instances.items() if instance.settings
    }
    assert folders == {"crm": "/data", "shop": "/data"}
    assert {path.name for path in snapshot.paths} == {"canal.properties", "server.yml"}, "a change of either is noticed"
    before = snapshot.instances["shop"].checksum
    again = read(tmp_path, CANAL, yaml.replace("/data", "/other"))
    assert again.instances["shop"].checksum != before
    assert str(again.server.data_dir) == "/other"


@pytest.mark.parametrize(
    ("canal", "yaml", "words"),
    [
        (
            CANAL,
            "canal: {port: 5}",
            r"properties \(canal.port\) and .*server.yml \(canal.port\) do not say",
        ),
        (CANAL, "admin: {port: null}", r"\(canal.metrics.pull.port\) and .*\(admin.port\)"),
        ("canal.file.data.dir = /a", "data_dir: /b", r"\(canal.file.data.dir\) and .*\(data_dir\)"),
        ("penstock.flight.port = 1", "flight: {port: 2}", r"\(penstock.flight.port\) and .*\(flight.port\)"),
        (CANAL, "flight: {prot: 2}", r"canal.properties with .*server.yml: flight.prot: Extra inputs"),
        (CANAL, "- 1", r"canal.properties with .*server.yml: "),
    ],
)
def test_what_the_two_files_say_must_be_the_same(tmp_path: Path, canal: str, yaml: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        read(tmp_path, canal, yaml)


def test_the_time_zone_of_properties_is_the_machines_unless_it_is_said() -> None:
    own = {"canal.instance.master.address": "db1"}
    key = "penstock.canal.time_zone"

    def zone(own: dict[str, str], shared: dict[str, str]) -> str:
        return read_canal_instance("shop", own, shared, Path("/conf"), {}).settings["canal"]["time_zone"]

    assert zone(own, {}) == "local"
    assert zone(own, {key: "Asia/Tokyo"}) == "Asia/Tokyo"
    assert zone(own | {key: "UTC"}, {key: "Asia/Tokyo"}) == "UTC"
