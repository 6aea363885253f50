"""Why a table passes or does not, in the words of the rules."""

from dataclasses import dataclass

from penstock.config import FilterSettings
from penstock.filter.column_rules import ColumnRules
from penstock.model import TableName
from penstock.model.table_rules import TableDecision, TableRules

_ROWS = {"insert", "update", "delete"}


@dataclass(frozen=True, slots=True)
class FilterExplanation:
    """Says whether a table passes the filter, which rule decides that, and which of its columns are delivered."""

    table: str
    passes: bool
    reason: str
    list: str | None  # allow, deny
    rule: str | None
    number: int | None  # of the rule in its list
    columns: str
    kinds: tuple[str, ...]


def explain_filter(settings: FilterSettings, table: TableName) -> FilterExplanation:
    """Return whether a table passes the filter settings, and why."""
    decision = TableRules.parse(settings.allow, settings.deny).decide(table)
    rule = decision.rule
    kinds = tuple(settings.kinds)
    reason = _describe_decision(decision)
    if decision.passes and not _ROWS & {*kinds}:
        reason += "; but kinds has none of insert, update and delete"
    return FilterExplanation(
        str(table),
        decision.passes,
        reason,
        decision.by,
        rule.text if rule else None,
        rule.number if rule else None,
        _describe_columns(settings, table),
        kinds,
    )


def _describe_decision(decision: TableDecision) -> str:
    """Return in words which rule decides, or that none does."""
    if decision.rule is not None:
        return f"rule {decision.rule.number} of the {decision.by} list: {decision.rule.text}"
    if decision.by == "allow":
        return "no rule of the allow list matches"
    return "no rule is against it, and the allow list is empty"


def _describe_columns(settings: FilterSettings, table: TableName) -> str:
    """Return in words which columns of the table are delivered."""
    matching = ColumnRules.from_settings(settings.columns).find_rule(table)
    if matching is None:
        return "all"
    rule, chosen = matching
    names = f"only {', '.join(chosen.keep)}" if chosen.keep else f"all but {', '.join(chosen.drop)}"
    return f"{names} (rule {rule.number} of the columns: {rule.text})"
