"""JSON values are the same by their kinds and all of their digits."""

import pytest

from penstock.model.json_equality import is_same_json, parse_json


@pytest.mark.parametrize(
    ("left", "right", "is_same"),
    [
        ('{"a": 1, "b": [1, null]}', '{"b":[1,null],"a":1}', True),
        ("1.50", "1.5", True),
        ("1", "1.0", True),
        ('{"paid": 1}', '{"paid": true}', False),
        ("[0]", "[false]", False),
        ("0.12345678901234567890", "0.12345678901234567891", False),
        ("[1, 2]", "[2, 1]", False),
        ('{"a": null}', "{}", False),
        ('"1"', "1", False),
        ("true", "true", True),
    ],
)
def test_values(left: str, right: str, is_same: bool) -> None:
    assert is_same_json(parse_json(left), parse_json(right)) is is_same
