"""`${env:…}` and `${file:…}`."""

from pathlib import Path

import pytest

from penstock.config import load_server_settings
from penstock.config.references import expand_references
from penstock.errors import ConfigurationError

HERE = Path("/conf/server.yml")


def of(text: str, environment: dict[str, str] | None = None) -> str:
    return expand_references(text, HERE, Path.read_bytes, environment or {})


def test_variables() -> None:
    assert of("a${env:X}b${env:Y}", {"X": "1", "Y": "2"}) == "a1b2"
    assert of("${env:X:-d:e}") == "d:e"
    assert of("${env:X:-d}", {"X": ""}) == "d"
    assert of("${env:X}", {"X": ""}) == ""
    assert of("${env:X}", {"X": "${env:Y}"}) == "${env:Y}", "what a variable holds is text"
    assert of("${canal.x:y} $X {env:X}") == "${canal.x:y} $X {env:X}"


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_files(tmp_path: Path, end: str) -> None:
    (tmp_path / "password").write_bytes(f" s3cret \n{end}".encode())
    where = tmp_path / "server.yml"
    assert expand_references({"a": ["${file:password}"]}, where) == {"a": [" s3cret " if not end else " s3cret \n"]}
    assert expand_references(f"${{file:{tmp_path}/password}}", where).startswith(" s3cret ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("${env:NOT_THERE}", "/conf/server.yml asks for the environment variable NOT_THERE, which is not set"),
        ("${env:a b}", "has a reference that cannot be read"),
        ("${file:nothing}", "asks for the file /conf/nothing, which cannot be read: No such file"),
    ],
)
def test_mistakes(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        of(text)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="no text in UTF-8"):
        expand_references("${file:key}", tmp_path / "server.yml")


@pytest.mark.parametrize(
    "text",
    [
        "canal: {password_hash: s3cret}",
        "flight: {tokens: [s3cret]}",
        "flight: {tokens: {a: {b: s3cret}}}",
        "canal: {password: *s3cret}",
        "canal: {password: !s3cret x}",
        "canal: {password: s3cret",
        "canal: {password: 's3cret}",
        "canal: {password: s3cret, port: s3cret}",
        "manager: {url: x, password: s3cret, poll_s: s3cret}",
        "instances: [{source: {password: s3cret, port: s3cret}}]",
        "instances: [{source: {password: [s3cret]}}]",
        "admin: {token: s3cret, s3cret2: 1, host: 10.0.0.1, port: -1}".replace("s3cret2", "more"),
        "password: [[[[[[[[s3cret",
        "a: " + "[" * 3000,
    ],
)
def test_no_complaint_has_a_secret_in_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "server.yml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as raised:
        load_server_settings(path)
    assert "s3cret" not in str(raised.value)
    assert "\n" not in str(raised.value)
    assert raised.value.__cause__ is None
