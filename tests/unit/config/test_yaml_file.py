"""Configuration files: what is read, what is looked up, and what is complained about."""

from pathlib import Path

import pytest

from penstock.config import ServerSettings, load_server_settings
from penstock.document import load_spec
from penstock.errors import ConfigurationError
from tests.support.yaml_texts import BOMB

SPEC = """
index: product
root:
  table: shop.product
  fields: [name]
  joins: {store: {table: shop.store, on: {store_id: id}, fields: [city]}}
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
    assert load_spec(write(tmp_path, SPEC)).root.joins["store"].on == {"store_id": "id"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("index: [", "is not YAML"),
        ("index: UPPER\nroot: {table: a.b, fields: [x]}", "index: "),
        ("index: x\nroot: {table: nodot, fields: [x]}", "root.table: .*database.table"),
        ("index: x\nroot: {table: a.b, fields: []}", "root.fields"),
        (SPEC + "\nextra: 1", "extra: "),
        (SPEC + "\nindex: other", "the key index of line 2 is written again, line 8, column 1"),
        ("index: x\nroot: {table: a.b, fields: [n, x, n]}", "root.fields: .*the field n is named twice$"),
        ("index: x\nroot: {table: a.b, fields: [Name, name]}", "the field name is named twice, first as Name"),
        (SPEC.replace("[city]", "[city, city]"), "root.joins.store.fields: .*the field city is named twice"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as raised:
        load_spec(write(tmp_path, text))
    assert "file.yml" in str(raised.value)
    assert "\n" not in str(raised.value)


MERGED = "a0: &a0 {x: 1}\n" + "".join(
    f"a{number}: &a{number} {{<<: [{', '.join([f'*a{number - 1}'] * 10)}]}}\n" for number in range(1, 30)
)
LONG = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 1000)}]\n"
UNREADABLE = {
    "date": ("start: 2024-13-45", "line 1, column 8"),
    "zone": ("start: 2024-01-01T00:00:00+99:00", "needs quotes"),
    "digits": (f"start: {'9' * 5000}", "needs quotes"),
    "binary": ("start: 0b_", "needs quotes"),
    "bool": ("start: !!bool s3cret", "needs quotes"),
    "int": ("start: !!int s3cret", "needs quotes"),
    "nothing": ("start: !!int ''", "needs quotes"),
    "time": ("start: !!timestamp s3cret", "needs quotes"),
    "itself": ("start: &a [*a]", "inside of what it repeats"),
    "key": ("start: &a {b: {c: *a}}", "inside of what it repeats"),
    "bomb": (BOMB, "aliases repeat more than 100000 values"),
    "merged": (MERGED, "aliases repeat more than 100000 values"),
    "long": (LONG, "aliases repeat more than 100000 values"),
    "deep": ("start: " + "[" * 5000 + "]" * 5000, "nested too deeply"),
    "nul": ('start: "${file:a\\0b}"', "a name that none can have"),
    "surrogate": ('start: "${file:a\\uD800b}"', "a name that none can have"),
}


@pytest.mark.parametrize(("text", "message"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_value_that_cannot_be_read_is_a_mistake_like_others(tmp_path: Path, text: str, message: str) -> None:
    for path in (write(tmp_path, text), write(tmp_path, f"instances:\n- {text.splitlines()[0]}")):
        with pytest.raises(ConfigurationError) as raised:
            load_server_settings(path)
        assert "file.yml" in str(raised.value)
        assert "\n" not in str(raised.value)
        assert "s3cret" not in str(raised.value)
        assert len(str(raised.value)) < 500
    with pytest.raises(ConfigurationError, match=message):
        load_server_settings(write(tmp_path, text))


def test_aliases_that_repeat_little_are_fine(tmp_path: Path) -> None:
    text = """
instances:
- {destination: a, source: &db {host: db1, user: &user capture}}
- {destination: b, source: {<<: *db, port: 7}}
- {destination: c, source: *db}
"""
    instances = load_server_settings(write(tmp_path, text)).instances
    assert [(instance.source.address, instance.source.user) for instance in instances] == [
        ("db1:3306", "capture"),
        ("db1:7", "capture"),
        ("db1:3306", "capture"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data_dir: /a\n\ndata_dir: /b", "the key data_dir of line 1 is written again, line 3, column 1"),
        ("instances:\n- source: {port: 1, host: a, port: 2}", "the key port of line 2 is written again, line 2"),
        ("instances:\n- {source: {host: a}}\n- start: a\n  'start': b", "the key start of line 3"),
        ("flight: {tokens: {1: a, 0x1: b}}", "the key 1 of line 1 is written again"),
    ],
)
def test_a_key_that_is_written_twice_is_refused_with_both_lines(tmp_path: Path, text: str, message: str) -> None:
    """One of the two values would be lost, and nobody would know which."""
    with pytest.raises(ConfigurationError, match=f"is not YAML: {message}"):
        load_server_settings(write(tmp_path, text))


def test_a_merged_key_may_be_written_over(tmp_path: Path) -> None:
    text = "instances:\n- &a {destination: a, start: earliest}\n- <<: *a\n  destination: b\n"
    settings = load_server_settings(write(tmp_path, text))
    assert [(instance.destination, instance.start) for instance in settings.instances] == [
        ("a", "earliest"),
        ("b", "earliest"),
    ]
