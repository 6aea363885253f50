"""Which tables a client wants to see, as canal writes it: `shop\\..*,crm\\.orders`."""

import re

from penstock.errors import ConfigurationError
from penstock.model import TableName
from penstock.store.client import TableFilter

_SEPARATOR = re.compile(r",(?![^{]*})")  # not the comma of a quantifier such as {1,2}


def table_filter(text: str) -> TableFilter | None:
    """Regular expressions for `database.table`, the whole of it, in any case; None for all tables."""
    parts = [part.strip() for part in _SEPARATOR.split(text) if part.strip()]
    if not parts:
        return None
    for part in parts:
        try:
            re.compile(part)
        except re.error as error:
            raise ConfigurationError(f"the filter {part!r} is no regular expression: {error}") from None
    pattern = re.compile("|".join(f"(?:{part})" for part in parts), re.IGNORECASE)

    def matches(table: TableName) -> bool:
        return pattern.fullmatch(str(table)) is not None

    return matches
