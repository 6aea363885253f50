"""A conf folder: what is read from it, and what is no change."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.config import ConfFolder, ConfigSnapshot, load_server_settings
from penstock.config.snapshot import SERVER
from penstock.errors import ConfigurationError


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


class Edited(ConfFolder):
    """Somebody edits the folder between the two looks."""

    def __init__(self, path: Path) -> None:
        self.edit: Callable[[], object] = lambda: None
        super().__init__(path, 0, lambda _: self.edit())


def read(folder: Path) -> ConfigSnapshot:
    return ConfFolder(folder, 0).read()


def errors(snapshot: ConfigSnapshot) -> dict[str, str | None]:
    return {name: instance.error for name, instance in snapshot.instances.items() if instance.settings is None}


def test_yaml_in_all_its_locations(tmp_path: Path) -> None:
    write(tmp_path / "server.yml", "data_dir: /data\ncanal: {port: null}\ninstances: [{destination: a}]")
    write(tmp_path / "b.yml", "source: {host: db-b}")
    write(tmp_path / "c" / "instance.yml", "destination: c\ndata_dir: /c")
    write(tmp_path / "README.md", "no instance")
    write(tmp_path / ".hidden.yml", "[")
    write(tmp_path / "empty" / "other.txt", "")
    snapshot = read(tmp_path)
    assert snapshot.server.canal.port is None
    assert errors(snapshot) == {}
    assert {
        name: str(instance.settings.data_dir) for name, instance in snapshot.instances.items() if instance.settings
    } == {
        "a": "/data",
        "b": "/data",
        "c": "/c",
    }
    assert snapshot.instances["b"].paths == (tmp_path / "b.yml", tmp_path / "server.yml")
    assert [instance.destination for instance in load_server_settings(tmp_path).instances] == ["a", "b", "c"]


def test_an_empty_folder_is_a_server_without_instances(tmp_path: Path) -> None:
    assert read(tmp_path).instances == {}
    with pytest.raises(ConfigurationError, match=r"cannot read .*nothing: No such file"):
        read(tmp_path / "nothing")


def test_canals_layout(tmp_path: Path) -> None:
    write(
        tmp_path / "canal.properties",
        "canal.destinations = example,templated,missing\ncanal.instance.templated.master.address = db9\ncanal.x = 1\n",
    )
    write(tmp_path / "example" / "instance.properties", "canal.instance.master.address=db1:3307\ncanal.y=1\n")
    write(tmp_path / "spring" / "file-instance.xml", "<beans/>")
    write(tmp_path / "ours.yml", "source: {host: db2}")
    snapshot = read(tmp_path)
    assert [*snapshot.instances] == ["example", "missing", "ours", "templated"]
    hosts = {
        name: instance.settings.source.address for name, instance in snapshot.instances.items() if instance.settings
    }
    assert hosts == {"example": "db1:3307", "ours": "db2:3306", "templated": "db9:3306"}
    assert "missing has no missing/instance.properties" in str(snapshot.instances["missing"].error)
    assert "canal.x" in dict(snapshot.ignored)
    assert dict(snapshot.instances["example"].ignored) == {"canal.y": "not a property of canal"}
    assert snapshot.instances["ours"].settings is not None
    assert snapshot.instances["ours"].settings.data_dir == tmp_path
    with pytest.raises(ConfigurationError, match="missing has no"):
        load_server_settings(tmp_path)


def test_properties_under_a_server_in_yaml(tmp_path: Path) -> None:
    write(tmp_path / "server.yml", "data_dir: /data")
    write(tmp_path / "shop" / "Instance.Properties", "canal.instance.master.address=db1\n")
    settings = read(tmp_path).instances["shop"].settings
    assert settings is not None
    assert str(settings.data_dir) == "/data"


def test_the_same_thing_twice_names_both(tmp_path: Path) -> None:
    write(tmp_path / "a.yml", "{}")
    write(tmp_path / "a" / "instance.properties", "canal.instance.master.address=db1")
    write(tmp_path / "server.yml", "instances: [{destination: b}, {destination: b}, {destination: c}, 7]")
    write(tmp_path / "c.yml", "{}")
    messages = errors(read(tmp_path))
    assert "a/instance.properties and" in str(messages["a"])
    assert "a.yml are about the same destination" in str(messages["a"])
    assert "server.yml and" in str(messages["b"])
    assert "c.yml are about the same destination, c" in str(messages["c"])
    assert messages["instances.3"]
    write(tmp_path / "server.yaml", "{}")
    with pytest.raises(ConfigurationError, match=r"server\.yaml and .*server\.yml are about the same server"):
        read(tmp_path)


def test_two_files_for_one_thing_that_both_go(tmp_path: Path) -> None:
    folder = ConfFolder(tmp_path, 0)
    for name in ("a.yml", "a.yaml"):
        write(tmp_path / name, "{}")
    assert [*folder.read().instances] == ["a"]
    for name in ("a.yml", "a.yaml"):
        (tmp_path / name).unlink()
    assert [*folder.read().instances] == []


def test_mistakes_are_of_their_destination_alone(tmp_path: Path) -> None:
    write(tmp_path / "good.yml", "{source: {host: db1}}")
    write(tmp_path / "bad.yml", "source: {hots: db1}")
    write(tmp_path / "no.yml", "- 1")
    write(tmp_path / "empty.yml", "")
    write(tmp_path / "two words.yml", "{}")
    write(tmp_path / "named.yml", "destination: other")
    write(tmp_path / "wants.yml", "source: {password: '${file:nothing}'}")
    (tmp_path / "gone.yml").symlink_to(tmp_path / "nowhere")
    snapshot = read(tmp_path)
    assert snapshot.instances["good"].settings
    told = errors(snapshot)
    assert [*told] == ["bad", "empty", "gone", "named", "no", "two words", "wants"]
    assert "bad.yml: source.hots: Extra inputs" in str(told["bad"])
    assert "named.yml: destination: it is named" in str(told["named"])
    assert "cannot read" in str(told["gone"])
    assert all("\n" not in str(text) for text in told.values())


def test_a_list_of_destinations(tmp_path: Path) -> None:
    for name in ("shop1", "shop2", "crm"):
        write(tmp_path / f"{name}.yml", "{epoch: 1}")
    write(tmp_path / "server.yml", "destinations: ['shop{1-3}']")
    snapshot = read(tmp_path)
    assert [*snapshot.instances] == ["shop1", "shop2", "shop3"]
    assert "wants shop3, and there is no shop3.yml" in str(snapshot.instances["shop3"].error)


def test_members_of_groups_are_instances(tmp_path: Path) -> None:
    server = "groups: [{destination: all, members: {east: {epoch: 1}, west: {epoch: 2}}}]\ndata_dir: /data\n"
    write(tmp_path / "server.yml", server)
    write(tmp_path / "crm.yml", "{epoch: 1}")
    snapshot = read(tmp_path)
    assert [*snapshot.instances] == ["all.east", "all.west", "crm"]
    west = snapshot.instances["all.west"].settings
    assert west is not None
    assert (west.destination, west.epoch, west.data_dir) == ("all.west", 2, Path("/data"))
    assert [instance.destination for instance in load_server_settings(tmp_path).all_instances] == [*snapshot.instances]
    write(tmp_path / "all.east.yml", "{epoch: 1}")
    assert "about the same destination, all.east" in str(read(tmp_path).instances["all.east"].error)
    write(tmp_path / "server.yml", f"{server}destinations: [all]")
    assert [*read(tmp_path).instances] == ["all.east", "all.west"]


def test_the_checksum_is_over_all_it_depends_on(tmp_path: Path) -> None:
    write(tmp_path / "server.yml", "data_dir: /data")
    write(tmp_path / "secret", "one")
    write(tmp_path / "a.yml", "source: {password: '${file:secret}'}")
    write(tmp_path / "b.yml", "{epoch: 1}")
    folder = ConfFolder(tmp_path, 0)
    first = folder.read()
    assert first.instances["a"].paths == (tmp_path / "a.yml", tmp_path / "secret", tmp_path / "server.yml")

    def changed(text: str, name: str) -> set[str]:
        before = folder.read()
        write(tmp_path / name, text)
        assert folder.has_changed()
        after = folder.read()
        folder.read()
        assert not folder.has_changed()
        return {key for key in after.instances if after.instances[key].checksum != before.instances[key].checksum}

    assert changed("two", "secret") == {"a"}
    assert changed("data_dir: /data\nscan_s: 7", "server.yml") == set()
    assert changed("data_dir: /other", "server.yml") == {"a", "b"}
    assert folder.read() is not first


def test_canals_defaults_count_for_the_checksum(tmp_path: Path) -> None:
    write(tmp_path / "canal.properties", "canal.instance.filter.regex=a.b")
    write(tmp_path / "shop" / "instance.properties", "canal.instance.master.address=db1")
    folder = ConfFolder(tmp_path, 0)
    before = folder.read().instances["shop"]
    write(tmp_path / "canal.properties", "canal.instance.filter.regex=a.c")
    after = folder.read().instances["shop"]
    assert before.checksum != after.checksum
    assert after.settings is not None
    assert after.settings.filter.allow == ("a.c",)


def test_nothing_new_is_the_same_snapshot(tmp_path: Path) -> None:
    write(tmp_path / "a.yml", "{epoch: 1}")
    folder = ConfFolder(tmp_path, 0)
    assert folder.has_changed()
    first = folder.read()
    folder.read()
    assert not folder.has_changed()
    os.utime(tmp_path / "a.yml")
    assert folder.has_changed()
    assert folder.read() == first
    assert not folder.has_changed()


def epoch(snapshot: ConfigSnapshot, name: str = "a") -> int | None:
    settings = snapshot.instances[name].settings
    return None if settings is None else settings.epoch


def test_a_file_that_is_being_written_is_no_change(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yml", "{epoch: 1}")
    folder = Edited(tmp_path)
    folder.read()
    path.write_text("{epoch: ", encoding="utf-8")
    folder.edit = lambda: path.write_text("{epoch: 2", encoding="utf-8")
    snapshot = folder.read()
    assert epoch(snapshot) == 1
    assert snapshot.unsettled == {"a": f"{path} is being written"}
    assert folder.has_changed()
    folder.edit = lambda: None
    path.write_text("{epoch: 2}", encoding="utf-8")
    snapshot = folder.read()
    assert (epoch(snapshot), snapshot.unsettled) == (2, {})


def test_a_file_that_is_empty_now_is_no_change(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yml", "{epoch: 1}")
    write(tmp_path / "b.yml", "{epoch: 1}")
    folder = Edited(tmp_path)
    folder.read()
    path.write_text("", encoding="utf-8")
    write(tmp_path / "b.yml", "{epoch: 2}")
    for _ in range(2):
        snapshot = folder.read()
        assert (epoch(snapshot), epoch(snapshot, "b")) == (1, 2), "others are not held up"
        assert "is empty, and was not before" in snapshot.unsettled["a"]
    path.write_text("{epoch: 3}", encoding="utf-8")
    assert epoch(folder.read()) == 3
    path.unlink()
    assert "a" not in folder.read().instances


def test_a_secret_file_in_the_middle_of_a_change(tmp_path: Path) -> None:
    write(tmp_path / "a.yml", "source: {user: '${file:user}'}")
    write(tmp_path / "user", "one")
    folder = Edited(tmp_path)
    folder.read()
    write(tmp_path / "user", "")
    assert [*folder.read().unsettled] == ["a"]
    write(tmp_path / "user", "two")
    settings = folder.read().instances["a"].settings
    assert settings is not None
    assert settings.model_dump()["source"]["user"] == "two"


def test_new_and_gone_between_two_looks(tmp_path: Path) -> None:
    folder = Edited(tmp_path)
    folder.read()
    write(tmp_path / "server.yml", "scan_s: 5")
    folder.edit = lambda: write(tmp_path / "new.yml", "{epoch: 1}")
    snapshot = folder.read()
    assert ([*snapshot.instances], [*snapshot.unsettled]) == ([], ["new"])
    folder.edit = lambda: None
    assert [*folder.read().instances] == ["new"]
    write(tmp_path / "server.yml", "scan_s: 6")
    folder.edit = (tmp_path / "new.yml").unlink
    snapshot = folder.read()
    assert ([*snapshot.instances], [*snapshot.unsettled]) == (["new"], ["new"])
    folder.edit = lambda: None
    assert [*folder.read().instances] == []


def test_a_server_file_in_the_middle_of_a_change_keeps_all(tmp_path: Path) -> None:
    write(tmp_path / "server.yml", "data_dir: /data")
    write(tmp_path / "a.yml", "{epoch: 1}")
    folder = Edited(tmp_path)
    folder.read()
    write(tmp_path / "server.yml", "data_dir: [")
    write(tmp_path / "a.yml", "{epoch: 2}")
    folder.edit = lambda: write(tmp_path / "server.yml", "data_dir: /other")
    snapshot = folder.read()
    assert (epoch(snapshot), [*snapshot.unsettled], str(snapshot.server.data_dir)) == (1, [SERVER], "/data")
    folder.edit = lambda: None
    snapshot = folder.read()
    assert (epoch(snapshot), snapshot.unsettled, str(snapshot.server.data_dir)) == (2, {}, "/other")
    write(tmp_path / "server.yml", "data_dir: [")
    with pytest.raises(ConfigurationError, match="is not YAML"):
        folder.read()
    write(tmp_path / "server.yml", "")
    assert "is empty" in folder.read().unsettled[SERVER]


def test_at_the_first_read_a_server_file_must_settle(tmp_path: Path) -> None:
    folder = Edited(tmp_path)
    numbers = iter(range(1, 1000))
    folder.edit = lambda: write(tmp_path / "server.yml", f"scan_s: {next(numbers)}")
    with pytest.raises(ConfigurationError, match="keep changing"):
        folder.read()
    folder.edit = lambda: None
    assert folder.read().server.scan_s > 1


def test_one_file_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "penstock.yml", "instances: [{destination: a, epoch: 1}, {destination: b, epoch: x}]")
    write(tmp_path / "other.yml", "{}")
    folder = Edited(path)
    snapshot = folder.read()
    assert (epoch(snapshot), [*errors(snapshot)]) == (1, ["b"])
    folder.read()
    assert not folder.has_changed()
    write(path, "instances: [{destination: a, epoch: 2}]")
    assert folder.has_changed()
    assert epoch(folder.read()) == 2
    path.unlink()
    with pytest.raises(ConfigurationError, match="cannot read"):
        folder.read()


def test_links_as_kubernetes_swaps_them(tmp_path: Path) -> None:
    """`a.yml` is a link to `..data/a.yml`, and `..data` one to a folder that is replaced as a whole."""
    conf = tmp_path / "conf"
    conf.mkdir()

    def publish(name: str, number: int) -> None:
        for destination in ("a", "b"):
            write(conf / name / f"{destination}.yml", f"epoch: {number}")
        (conf / "..new").symlink_to(name)
        (conf / "..new").rename(conf / "..data")

    publish("..1", 1)
    for destination in ("a", "b"):
        (conf / f"{destination}.yml").symlink_to(f"..data/{destination}.yml")
    folder = Edited(conf)
    assert [*folder.read().instances] == ["a", "b"]
    publish("..2", 2)
    assert folder.has_changed()
    snapshot = folder.read()
    assert (epoch(snapshot, "a"), epoch(snapshot, "b")) == (2, 2)
    publish("..3", 3)
    folder.edit = lambda: publish("..4", 4)
    snapshot = folder.read()
    assert (epoch(snapshot, "a"), epoch(snapshot, "b")) == (2, 2)
    folder.edit = lambda: None
    assert epoch(folder.read(), "b") == 4
