"""What a server file may say about stores, cursors and positions, and what is a mistake."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from penstock.config import (
    DirectorySettings,
    GroupSettings,
    InstanceSettings,
    ServerSettings,
    SourceSettings,
    StoreSettings,
)


def test_defaults_need_no_disk_and_no_server() -> None:
    settings = InstanceSettings()
    assert (settings.store.kind, settings.meta_kind, settings.positions) == ("memory", "memory", ("cursors",))
    assert settings.store.memory == 64 << 20


def test_what_the_server_says_counts_for_its_instances() -> None:
    settings = ServerSettings.model_validate(
        {
            "data_dir": "/var/lib/penstock",
            "zookeeper": "zk:2181",
            "instances": [{"destination": "a"}, {"destination": "b", "data_dir": "/b", "zookeeper": "other:2181"}],
        }
    )
    first, two = settings.instances
    assert (first.data_dir, first.zookeeper, first.meta_kind) == (Path("/var/lib/penstock"), "zk:2181", "period-mixed")
    assert (two.data_dir, two.zookeeper) == (Path("/b"), "other:2181")


def test_with_a_folder_cursors_are_in_files() -> None:
    assert InstanceSettings(data_dir=Path("/data")).meta_kind == "file"


def test_sizes_are_written_as_people_write_them() -> None:
    store = StoreSettings.model_validate({"kind": "file", "segment": "16MiB", "limit": "2GiB"})
    assert (store.segment, store.limit) == (16 << 20, 2 << 30)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"store": {"kind": "file"}}, "keeps files: set data_dir"),
        ({"store": {"kind": "mixed"}}, "keeps files: set data_dir"),
        ({"meta": {"kind": "file"}}, "keeps files: set data_dir"),
        ({"positions": ["file", "cursors"]}, "keeps files: set data_dir"),
        ({"meta": {"kind": "period-mixed"}}, "needs ZooKeeper: set zookeeper"),
        ({"positions": ["zookeeper"]}, "needs ZooKeeper: set zookeeper"),
        ({"positions": []}, "at least 1 item"),
        ({"store": {"slots": 1000}}, "1000 is no power of two"),
        ({"store": {"limit": "1GiB"}}, "a store of kind memory has no limit"),
        ({"store": {"kind": "file", "memory": "1GiB"}, "data_dir": "/data"}, "a store of kind file has no memory"),
        ({"store": {"kind": "mixed", "keep": "1GiB"}, "data_dir": "/data"}, "a store of kind mixed has no keep"),
        ({"epoch": 512}, "less than or equal to 511"),
    ],
)
def test_a_mistake_is_named(value: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        InstanceSettings.model_validate(value)


def test_a_source_is_a_server_or_a_folder() -> None:
    """Their fields tell them apart."""
    either: TypeAdapter[SourceSettings | DirectorySettings] = TypeAdapter(SourceSettings | DirectorySettings)
    assert either.validate_python({}) == SourceSettings()
    assert either.validate_python({"host": "db1", "semi_sync": True}) == SourceSettings(host="db1", semi_sync=True)
    folder = either.validate_python({"path": "s3://bucket/logs", "poll_s": 5})
    assert folder == DirectorySettings(path="s3://bucket/logs", poll_s=5)
    assert folder.address == "s3://bucket/logs"
    with pytest.raises(ValidationError):
        either.validate_python({"path": "/logs", "host": "db1"})


def test_members_of_a_group_are_named_after_it() -> None:
    group = GroupSettings(destination="shop", members={"east": InstanceSettings(), "west": InstanceSettings()})
    assert [member.destination for member in group.named_members().values()] == ["shop.east", "shop.west"]
    with pytest.raises(ValidationError, match=r"'a\.b' is no name for a member"):
        GroupSettings(destination="shop", members={"a.b": InstanceSettings()})
    with pytest.raises(ValidationError, match="at least 1 item"):
        GroupSettings(destination="shop", members={})
