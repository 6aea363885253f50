"""Configuration files: what is read, what is looked up, and what is complained about."""

from pathlib import Path

import pytest

from penstock.config import ServerSettings, load_server_settings
from penstock.document import load_spec
from penstock.errors import ConfigurationError

SPEC = """
index: product
root: {table: shop.product, columns: [name]}
joins:
  store: {table: shop.store, on: {store_id: id}, columns: [city]}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "file.yml"
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults_are_enough(tmp_path: Path) -> None:
    assert load_server_settings(write(tmp_path, "")) == ServerSettings()


def test_a_secret_comes_from_the_environment_and_is_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "s3cret-word")
    path = write(tmp_path, "instances:\n- source: {password: '${env:SHOP_PASSWORD}'}")
    settings = load_server_settings(path)
    assert settings.instances[0].source.password.get_secret_value() == "s3cret-word"
    assert "s3cret-word" not in repr(settings) + str(settings)
    bad = write(tmp_path, "instances:\n- source: {password: '${env:SHOP_PASSWORD}', port: 70000}")
    with pytest.raises(ConfigurationError) as raised:
        load_server_settings(bad)
    assert "instances.0.source.port" in str(raised.value)
    assert "s3cret-word" not in str(raised.value)


def test_on_is_a_word(tmp_path: Path) -> None:
    assert load_spec(write(tmp_path, SPEC)).joins["store"].on == {"store_id": "id"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("index: [", "is not YAML"),
        ("index: UPPER\nroot: {table: a.b, columns: [x]}", "index: "),
        ("index: x\nroot: {table: nodot, columns: [x]}", "root.table: .*database.table"),
        ("index: x\nroot: {table: a.b, columns: []}", "root.columns"),
        (SPEC + "\nextra: 1", "extra: "),
    ],
)
def test_a_mistake_is_one_line_with_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as raised:
        load_spec(write(tmp_path, text))
    assert "file.yml" in str(raised.value)
    assert "\n" not in str(raised.value)
