"""Which tables a client wants to see, as canal writes it: `shop\\..*,crm\\.orders`."""

from penstock.model.table_rules import TableRules, read_rules
from penstock.store.client import TableFilter


def table_filter(text: str) -> TableFilter | None:
    """None for all tables."""
    rules = read_rules(text, "")
    return TableRules(rules).passes if rules else None
