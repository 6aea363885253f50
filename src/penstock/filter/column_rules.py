"""Which columns of a table are shown.

The bytes of the log hold whole rows: columns are left out where rows are decoded. Columns of the key are always there,
since without them a change cannot be related to its row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.config import ColumnSettings
from penstock.errors import ConfigurationError
from penstock.model import Column, TableName, TableSchema
from penstock.model.table_rules import Rule, read_rules


@dataclass(frozen=True, slots=True)
class ColumnRules:
    """The first rule that matches a table counts. Names of columns count in any case."""

    rules: tuple[tuple[Rule, ColumnSettings], ...] = ()

    @classmethod
    def of(cls, settings: Sequence[ColumnSettings]) -> "ColumnRules":
        rules = read_rules([one.table for one in settings], "columns")
        if len(rules) != len(settings):
            raise ConfigurationError("each list of columns is for one regular expression: write a comma as [,]")
        return cls(tuple(zip(rules, settings, strict=True)))

    @property
    def is_empty(self) -> bool:
        return not self.rules

    def rule_of(self, table: TableName) -> tuple[Rule, ColumnSettings] | None:
        return next((pair for pair in self.rules if pair[0].matches(table)), None)

    def columns_of(self, table: TableSchema) -> tuple[Column, ...]:
        """Return the columns to show, in the table's order."""
        found = self.rule_of(table.name)
        if found is None:
            return table.shown
        rule, chosen = found
        keep, drop = ({name.casefold() for name in names} for names in (chosen.keep, chosen.drop))
        shown = tuple(
            one for one in table.shown if (one.name.casefold() in keep if keep else one.name.casefold() not in drop)
        )
        left_out = {one.name for one in table.shown} - {one.name for one in shown}
        if missing := [name for name in table.key if name in left_out]:
            raise ConfigurationError(
                f"rule {rule.number} of the columns, for {rule.text}, leaves out {', '.join(missing)} of the key of"
                f" {table.name}: without it nobody can tell which row has changed"
            )
        return shown
