"""Java's `.properties` files."""

import string
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config.properties import parse_properties, resolve_placeholders
from penstock.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("a=1\nb: 2\nc 3\nd\t=\t4\r\ne\r f = 6 ", {"a": "1", "b": "2", "c": "3", "d": "4", "e": "", "f": "6 "}),
        ("# a=1\n ! b=2\n\n   \nc=3#4!5", {"c": "3#4!5"}),
        ("a=1,\\\n   2,\\\n\t3\nb=4", {"a": "1,2,3", "b": "4"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\\n# b=2", {"a": "1# b=2"}),
        ("a=1\\", {"a": "1"}),
        ("a\\ b\\=c\\:d = e", {"a b=c:d": "e"}),
        ("a = = b", {"a": "= b"}),
        ("= b", {"": "b"}),
        (".x=.*\\\\..*", {".x": ".*\\..*"}),
        ("a=\\t\\n\\q\\u00e9\\ud83d\\ude00", {"a": "\t\nqé😀"}),
        ("a=é", {"a": "é"}),
        ("a=1\na=2", {"a": "2"}),
        ("", {}),
    ],
)
def test_what_is_read(text: str, properties: dict[str, str]) -> None:
    assert parse_properties(text.encode(), "x") == properties


def test_java_reads_latin_1_and_people_write_utf_8() -> None:
    assert parse_properties("a=é".encode("iso-8859-1"), "x") == {"a": "é"}
    assert parse_properties(b"\xef\xbb\xbfa=1", "x") == {"a": "1"}


@pytest.mark.parametrize("text", ["a=1\nb=\\u12", "\nb=\\uzzzz", "\nb=\\ud800"])
def test_mistakes_are_one_line_without_the_value(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"x\.properties, line 2: ") as raised:
        parse_properties(text.encode(), "x.properties")
    assert "\n" not in str(raised.value)


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(char):04x}" if char not in string.ascii_letters else char for char in text)


texts = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=12)


@given(st.dictionaries(texts.filter(bool), texts, max_size=5))
def test_what_is_escaped_comes_back(values: dict[str, str]) -> None:
    text = "\n".join(f"{escaped(key)}={escaped(value)}" for key, value in values.items())
    assert parse_properties(text.encode(), "x") == values


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_complained_about(data: bytes) -> None:
    with suppress(ConfigurationError):
        assert all(isinstance(value, str) for value in parse_properties(data, "x").values())


def test_placeholders() -> None:
    values = {"a": "1", "b": "${a}${c:2}", "d.a": "x", "e": "", "which": "a"}
    assert resolve_placeholders("${b}-${a:9}-${z:9}-${e:8}", values) == "12-1-9-"
    assert resolve_placeholders("${z:${a}}${z:${y:${b}}}", values) == "112"
    assert resolve_placeholders("${d.${which}}", values) == "x"
    assert resolve_placeholders("${z:}|${z}|$a|${", values) == "|${z}|$a|${"
    assert resolve_placeholders("jdbc:h2:${dir:../conf}/${name:}", {"name": "shop"}) == "jdbc:h2:../conf/shop"


def test_a_circle_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="refers to itself"):
        resolve_placeholders("${a}", {"a": "${b}", "b": "x${a}"})
