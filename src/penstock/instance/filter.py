"""Which tables a client wants to see, as canal writes it: `shop\\..*,crm\\.orders`."""

import re

from penstock.errors import ConfigurationError
from penstock.model import TableName
from penstock.store.client import TableFilter

_PART = re.compile(r"(?:\\.|\[(?:\\.|[^\]])*\]|\{[^}]*\}|[^,])+")  # a comma in a quantifier or a class belongs to it


def table_filter(text: str) -> TableFilter | None:
    """Regular expressions for `database.table`, the whole of it, in any case; None for all tables."""
    parts = [part.strip() for part in _PART.findall(text) if part.strip()]
    if not parts:
        return None
    try:
        patterns = [re.compile(part, re.IGNORECASE) for part in parts]
    except re.error as error:
        raise ConfigurationError(f"the filter {error.pattern!r} is no regular expression: {error}") from None

    def matches(table: TableName) -> bool:
        return any(pattern.fullmatch(str(table)) for pattern in patterns)

    return matches
