"""A database of a catalogue."""

from dataclasses import dataclass, field

from penstock.model import TableName
from penstock.schema.collation import charset_of_collation
from penstock.schema.shape import TableDefinition
from penstock.schema.shared_map import SharedMap


@dataclass(frozen=True, slots=True)
class Database:
    """A database of a catalogue: its default collation, tables, views, and the tables whose schema is unknown."""

    name: str
    collation: str
    tables: SharedMap[TableDefinition] = field(default_factory=SharedMap[TableDefinition])  # by folded name
    views: frozenset[str] = frozenset()
    unknown: SharedMap[str] = field(default_factory=SharedMap[str])  # by folded name: since which statement

    @property
    def charset(self) -> str:
        """Return the charset of the default collation."""
        return charset_of_collation(self.collation)


def describe_unknown(name: TableName, statement: str) -> str:
    """Return the text of the error for a table whose schema is not known since a statement."""
    return f"what table {name} looks like is not known since this statement: {statement}"
