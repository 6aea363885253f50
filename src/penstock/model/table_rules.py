"""Which tables are meant, as canal writes it: `shop\\..*,crm\\.orders` to allow, another such list to deny.

A rule is a regular expression for `database.table`, the whole of it, in any case. A table passes when a rule allows it,
or there is none to allow, and no rule denies it. A table without a name stands for its database, and without both for
what belongs to none: it passes when a rule may allow some table of it, and none denies all of them.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from penstock.errors import ConfigurationError
from penstock.model.table import TableName

_CLOSED_BY = {"(": ")", "{": "}"}
_TWO_BACKSLASHES = "\\\\."
# Up to an escaped dot, or one in a class of its own, with no group or class before it that a cut could break.
_DATABASE_PART = re.compile(r"(?P<part>(?:\\[^.]|[^\\\[\]()|])+)(?:\\\.|\[\.\])")


@dataclass(frozen=True, slots=True)
class TableRule:
    """One pattern of an allow or deny list; `number` is its position in the list, from 1."""

    text: str
    number: int
    pattern: re.Pattern[str]

    def matches(self, table: TableName) -> bool:
        """Return whether the pattern matches the whole name of a table."""
        return self.pattern.fullmatch(str(table)) is not None

    def allows(self, table: TableName) -> bool:
        """Return whether the rule matches a table, or for a table without a name any table of that database."""
        if table.table or self.matches(table):
            return self.matches(table)
        part = database_part(self.text)
        return part is not None and re.fullmatch(part, table.schema, re.IGNORECASE) is not None


@dataclass(frozen=True, slots=True)
class TableDecision:
    """Says whether a table passes, and why: `rule` decided it, from the list `by`. Without a rule, no rule matched."""

    passes: bool
    by: Literal["allow", "deny"] | None = None
    rule: TableRule | None = None


@dataclass(frozen=True, slots=True)
class TableRules:
    r"""The allow and deny lists of a table filter. A table passes if it is allowed, or nothing is listed, and is not
    denied.

        rules = TableRules.parse(allow=r"shop\..*", deny=r"shop\.tmp_.*")
        rules.passes(TableName("shop", "product"))  # True
    """

    allow: tuple[TableRule, ...] = ()
    deny: tuple[TableRule, ...] = ()

    @classmethod
    def parse(cls, allow: str | Iterable[str] = "", deny: str | Iterable[str] = "") -> "TableRules":
        """Parse comma-separated allow and deny lists; several lists count as one longer list."""
        return cls(parse_rules(allow, "allow"), parse_rules(deny, "deny"))

    def passes(self, table: TableName) -> bool:
        """Return whether a table passes the lists."""
        return self.decide(table).passes

    def decide(self, table: TableName) -> TableDecision:
        """Return whether a table passes the lists, and which rule decided that."""
        allowed = next((rule for rule in self.allow if rule.allows(table)), None)
        if self.allow and allowed is None:
            return TableDecision(False, "allow")
        denied = next((rule for rule in self.deny if rule.matches(table)), None)
        if denied is not None:
            return TableDecision(False, "deny", denied)
        return TableDecision(True, "allow" if allowed else None, allowed)


def parse_rules(lists: str | Iterable[str], name: str) -> tuple[TableRule, ...]:
    """Parse lists of table patterns; `name` is that of the list, for error messages."""
    rule_lists = [lists] if isinstance(lists, str) else lists
    texts = [part for text in rule_lists for part in split_list(text)]
    return tuple(_parse_rule(text, number, name) for number, text in enumerate(texts, 1))


def split_list(text: str) -> Iterator[str]:
    """Split a list at its commas, but not at those in a quantifier, a class or a group."""
    start, closing = 0, list[str]()
    in_class, is_escaped = -1, False  # where the class begins
    for at, char in enumerate(text):
        if is_escaped or char == "\\":
            is_escaped = not is_escaped
        elif in_class >= 0:
            # A bracket right after the opening one is part of the class.
            in_class = -1 if char == "]" and text[in_class:at] not in ("[", "[^") else in_class
        elif char == "[":
            in_class = at
        elif char in _CLOSED_BY:
            closing.append(_CLOSED_BY[char])
        elif closing and char == closing[-1]:
            closing.pop()
        elif char == "," and not closing:
            if part := text[start:at].strip():
                yield part
            start = at + 1
    if part := text[start:].strip():
        yield part


def database_part(text: str) -> str | None:
    """Return the part of a pattern that matches the database, before its first dot; None if that part has groups or
    alternatives, which may span the dot."""
    match = _DATABASE_PART.match(text)
    return match["part"] if match else None


def check_dots(text: str, where: str) -> None:
    """Raise ConfigurationError for a pattern with a doubled backslash before its dot, which matches no table."""
    if _TWO_BACKSLASHES in text:
        right = text.replace(_TWO_BACKSLASHES, "\\.")
        raise ConfigurationError(f"{where} matches no table: a dot has one backslash here, {right}")


def _parse_rule(text: str, number: int, name: str) -> TableRule:
    """Parse one pattern of a list."""
    where = f"rule {number} of the {name} list, '{text}'," if name else f"the filter '{text}'"
    check_dots(text, where)
    try:
        return TableRule(text, number, re.compile(text, re.IGNORECASE))
    except re.error as error:
        raise ConfigurationError(f"{where} is no regular expression: {error}") from None
