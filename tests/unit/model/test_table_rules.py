"""Rules for tables in canal's syntax."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigurationError
from penstock.model import TableName
from penstock.model.table_rules import TableDecision, TableRules, split_list


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        (" , ,", []),
        ("a.b, c.d ", ["a.b", "c.d"]),
        ("a.b{1,2},c", ["a.b{1,2}", "c"]),
        ("a.b{2,},c", ["a.b{2,}", "c"]),
        ("a.[x,y],c", ["a.[x,y]", "c"]),
        ("a.[],x],c", ["a.[],x]", "c"]),
        ("a.[^],x],c", ["a.[^],x]", "c"]),
        ("a.[^^],c", ["a.[^^]", "c"]),
        ("a.[x[],c", ["a.[x[]", "c"]),
        (r"a.[\],x],c", [r"a.[\],x]", "c"]),
        ("a.(b|(c,d)),e", ["a.(b|(c,d))", "e"]),
        (r"a.\(,e", [r"a.\(", "e"]),
        (r"a\,b,c", [r"a\,b", "c"]),
        ("a),b", ["a)", "b"]),
    ],
)
def test_commas_divide_a_list_outside_of_brackets(text: str, parts: list[str]) -> None:
    assert list(split_list(text)) == parts


@given(st.lists(st.from_regex(r"[a-z]{1,4}(\\\.[a-z*]{0,3})?", fullmatch=True), max_size=5))
def test_a_list_is_its_parts(parts: list[str]) -> None:
    assert list(split_list(",".join(parts))) == parts


@pytest.mark.parametrize(
    ("allow", "deny", "table", "decision"),
    [
        ("", "", "shop.a", (True, None, None)),
        ("shop\\..*", "", "SHOP.A", (True, "allow", 1)),
        ("x.y,shop\\..*", "", "shop.a", (True, "allow", 2)),
        ("shop\\..*", "", "workshop.a", (False, "allow", None)),
        ("shop\\..*", "x.y, .*\\.A", "shop.a", (False, "deny", 2)),
        ("", "shop\\..*", "shop.a", (False, "deny", 1)),
        ("", "shop\\..*", "crm.a", (True, None, None)),
        ("crm\\..*", "shop\\..*", "shop.a", (False, "allow", None)),
        ("shop\\.(a|b)", "", "shop.ab", (False, "allow", None)),
        ("Straße.*", "", "straße.a", (True, "allow", 1)),
    ],
)
def test_allow_then_deny(allow: str, deny: str, table: str, decision: tuple[bool, str | None, int | None]) -> None:
    actual = TableRules.parse(allow, deny).decide(TableName.parse(table))
    assert (actual.passes, actual.by, actual.rule and actual.rule.number) == decision


def test_lists_may_be_several() -> None:
    rules = TableRules.parse(["a.b", "c.d,e.f"])
    assert [(rule.number, rule.text) for rule in rules.allow] == [(1, "a.b"), (2, "c.d"), (3, "e.f")]
    assert rules.decide(TableName("a", "b")) == TableDecision(True, "allow", rules.allow[0])


@pytest.mark.parametrize(
    ("allow", "deny", "words"),
    [
        ("a.b,c.(d", "", r"rule 2 of the allow list, 'c\.\(d', is no regular expression: missing \)"),
        ("", "*", r"rule 1 of the deny list, '\*', is no regular expression: nothing to repeat at position 0"),
        ("shop\\\\..*", "", r"matches no table: a dot has one backslash here, shop\\\.\.\*"),
    ],
)
def test_a_bad_rule_is_named_with_its_position(allow: str, deny: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        TableRules.parse(allow, deny)
