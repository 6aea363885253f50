"""What of the log is captured: rules by table, column and kind, applied to blocks without decoding them."""

from penstock.filter.block_filter import BlockFilter
from penstock.filter.column_rules import ColumnRules
from penstock.filter.explain import FilterExplanation, explain_filter

__all__ = ["BlockFilter", "ColumnRules", "FilterExplanation", "explain_filter"]
