"""Settings that are shown have no secrets in them."""

import yaml

from penstock.config import InstanceSettings, ServerSettings
from penstock.config.masking import describe_differences, to_yaml


def of(**given: object) -> InstanceSettings:
    return InstanceSettings.model_validate(given)


def test_secrets_are_masked() -> None:
    settings = ServerSettings.model_validate(
        {
            "flight": {"tokens": {"spark": "s3cret"}},
            "canal": {"user": "canal", "password_hash": "e3619321c1a937c46a0d8bd1dac39f93b27d4458"},
            "admin": {"token": "s3cret"},
            "data_dir": "/data",
            "instances": [{"source": {"password": "s3cret"}, "standby": {"host": "db2"}, "store": {"memory": "1MiB"}}],
        }
    )
    text = to_yaml(settings)
    assert "s3cret" not in text
    assert "e36193" not in text
    masked = yaml.safe_load(text)
    assert masked["flight"]["tokens"] == {"spark": "***"}
    assert masked["data_dir"] == "/data"
    assert masked["instances"][0]["store"]["memory"] == 1 << 20
    assert masked["instances"][0]["standby"]["password"] == "***"
    assert yaml.safe_load(to_yaml(InstanceSettings()))["source"]["password"] == ""


def test_differences() -> None:
    old = of(source={"host": "db1", "password": "s3cret"}, filter={"allow": "a.b"})
    assert describe_differences(old, old) == []
    new = of(source={"host": "db2", "password": "other"}, filter={"allow": "a.c"}, standby={"host": "db3"})
    lines = describe_differences(old, new)
    assert lines[:2] == ["source.host: db1 → db2", "source.password: ***"]
    assert "filter.allow: ['a.b'] → ['a.c']" in lines
    assert "standby.host: None → db3" in lines
    assert not any("s3cret" in line or "other" in line for line in lines)
    folder = of(source={"path": "/logs"})
    assert "source.path: None → /logs" in describe_differences(old, folder)
    assert "s3cret" not in " ".join(describe_differences(old, folder))
