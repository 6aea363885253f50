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
class Rule:
    """One pattern of a list; `number` is its position in the list, from 1."""

    text: str
    number: int
    pattern: re.Pattern[str]

    def matches(self, table: TableName) -> bool:
        return self.pattern.fullmatch(str(table)) is not None

    def allows(self, table: TableName) -> bool:
        """Return whether the rule matches a table, or for a table without a name any table of that database."""
        if table.table or self.matches(table):
            return self.matches(table)
        part = database_part(self.text)
        return part is not None and re.fullmatch(part, table.schema, re.IGNORECASE) is not None


@dataclass(frozen=True, slots=True)
class Decision:
    """`rule` is the one that decides, of the list `by`; without one it is what counts where no rule matches."""

    passes: bool
    by: Literal["allow", "deny"] | None = None
    rule: Rule | None = None


@dataclass(frozen=True, slots=True)
class TableRules:
    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()

    @classmethod
    def of(cls, allow: str | Iterable[str] = "", deny: str | Iterable[str] = "") -> "TableRules":
        """Return the rules of comma-separated lists; several lists are one longer list."""
        return cls(read_rules(allow, "allow"), read_rules(deny, "deny"))

    def passes(self, table: TableName) -> bool:
        return self.decide(table).passes

    def decide(self, table: TableName) -> Decision:
        allowed = next((rule for rule in self.allow if rule.allows(table)), None)
        if self.allow and allowed is None:
            return Decision(False, "allow")
        denied = next((rule for rule in self.deny if rule.matches(table)), None)
        if denied is not None:
            return Decision(False, "deny", denied)
        return Decision(True, "allow" if allowed else None, allowed)


def read_rules(lists: str | Iterable[str], name: str) -> tuple[Rule, ...]:
    """Parse a list of rules; `name` is that of the list, for error messages."""
    several = [lists] if isinstance(lists, str) else lists
    texts = [part for text in several for part in split_list(text)]
    return tuple(_rule(text, number, name) for number, text in enumerate(texts, 1))


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
    """Return the part of a rule that is for the database, before its first dot; None where it is not plain."""
    found = _DATABASE_PART.match(text)
    return found["part"] if found else None


def check_dots(text: str, where: str) -> None:
    if _TWO_BACKSLASHES in text:
        right = text.replace(_TWO_BACKSLASHES, "\\.")
        raise ConfigurationError(f"{where} matches no table: a dot has one backslash here, {right}")


def _rule(text: str, number: int, name: str) -> Rule:
    where = f"rule {number} of the {name} list, '{text}'," if name else f"the filter '{text}'"
    check_dots(text, where)
    try:
        return Rule(text, number, re.compile(text, re.IGNORECASE))
    except re.error as error:
        raise ConfigurationError(f"{where} is no regular expression: {error}") from None
