"""Which columns of a table are shown.

The bytes of the log hold whole rows: columns are left out where rows are decoded. Columns of the key are always there,
since without them a change cannot be related to its row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.config import ColumnSettings
from penstock.errors import ConfigurationError
from penstock.model import Column, TableName, TableSchema
from penstock.model.table_rules import TableRule, parse_rules


@dataclass(frozen=True, slots=True)
class ColumnRules:
    """The rules that choose which columns of a table are delivered. The first rule that matches a table counts; column
    names are compared without case.

        rules = ColumnRules.from_settings(settings.filter.columns)
        columns = rules.columns_to_show(schema)
    """

    rules: tuple[tuple[TableRule, ColumnSettings], ...] = ()

    @classmethod
    def from_settings(cls, settings: Sequence[ColumnSettings]) -> "ColumnRules":
        """Compile the column rules of the filter settings."""
        rules = parse_rules([entry.table for entry in settings], "columns")
        if len(rules) != len(settings):
            raise ConfigurationError("each list of columns is for one regular expression: write a comma as [,]")
        return cls(tuple(zip(rules, settings, strict=True)))

    @property
    def is_empty(self) -> bool:
        """Return whether there are no rules, so that all columns are delivered."""
        return not self.rules

    def find_rule(self, table: TableName) -> tuple[TableRule, ColumnSettings] | None:
        """Return the first rule that matches a table, with its settings; None when no rule does."""
        return next((pair for pair in self.rules if pair[0].matches(table)), None)

    def columns_to_show(self, table: TableSchema) -> tuple[Column, ...]:
        """Return the columns of a table to deliver, in the table's order."""
        matching = self.find_rule(table.name)
        if matching is None:
            return table.declared_columns
        rule, chosen = matching
        keep, drop = ({name.casefold() for name in names} for names in (chosen.keep, chosen.drop))
        shown = tuple(
            column
            for column in table.declared_columns
            if (column.name.casefold() in keep if keep else column.name.casefold() not in drop)
        )
        left_out = {column.name for column in table.declared_columns} - {column.name for column in shown}
        if missing := [name for name in table.key if name in left_out]:
            raise ConfigurationError(
                f"rule {rule.number} of the columns, for {rule.text}, leaves out {', '.join(missing)} of the key of"
                f" {table.name}: without it nobody can tell which row has changed"
            )
        return shown
