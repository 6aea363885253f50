"""Why a table passes or does not, in the words of the rules."""

from dataclasses import dataclass

from penstock.config import FilterSettings
from penstock.filter.column_rules import ColumnRules
from penstock.model import TableName
from penstock.model.table_rules import Decision, TableRules

_ROWS = {"insert", "update", "delete"}


@dataclass(frozen=True, slots=True)
class Explanation:
    table: str
    passes: bool
    reason: str
    list: str | None  # allow, deny
    rule: str | None
    number: int | None  # of the rule in its list
    columns: str
    kinds: tuple[str, ...]


def explain(settings: FilterSettings, table: TableName) -> Explanation:
    decision = TableRules.of(settings.allow, settings.deny).decide(table)
    rule = decision.rule
    kinds = tuple(settings.kinds)
    reason = _reason(decision)
    if decision.passes and not _ROWS & {*kinds}:
        reason += "; but kinds has none of insert, update and delete"
    return Explanation(
        str(table),
        decision.passes,
        reason,
        decision.by,
        rule.text if rule else None,
        rule.number if rule else None,
        _columns(settings, table),
        kinds,
    )


def _reason(decision: Decision) -> str:
    if decision.rule is not None:
        return f"rule {decision.rule.number} of the {decision.by} list: {decision.rule.text}"
    if decision.by == "allow":
        return "no rule of the allow list matches"
    return "no rule is against it, and the allow list is empty"


def _columns(settings: FilterSettings, table: TableName) -> str:
    found = ColumnRules.of(settings.columns).rule_of(table)
    if found is None:
        return "all"
    rule, chosen = found
    names = f"only {', '.join(chosen.keep)}" if chosen.keep else f"all but {', '.join(chosen.drop)}"
    return f"{names} (rule {rule.number} of the columns: {rule.text})"
