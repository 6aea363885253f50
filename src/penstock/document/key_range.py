"""A range of documents by the first column of their key, for which it must be an integer."""

import re
from dataclasses import dataclass

from penstock.document.document_id import parse_document_id
from penstock.document.graph import DocumentGraph
from penstock.document.sql_text import KeyValue
from penstock.errors import ConfigurationError, PenstockError
from penstock.model import WireType
from penstock.snapshot.key_column import quote_name

_FORM = re.compile(r"(-?\d+)?\.\.(-?\d+)?")
_INTEGERS = {WireType.TINY, WireType.SHORT, WireType.INT24, WireType.LONG, WireType.LONGLONG}


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Documents whose key begins with an integer from `low` up to `high`, both included; None is no limit.

    keys = KeyRange.parse("1000..1999", graph)
    """

    graph: DocumentGraph
    low: int | None
    high: int | None

    @classmethod
    def parse(cls, text: str, graph: DocumentGraph) -> "KeyRange":
        """Return the range that a text such as `1000..1999`, `1000..` or `..1999` means for the documents of a graph.
        Raises ConfigurationError for another text, and for documents whose key does not begin with an integer."""
        match = _FORM.fullmatch(text.strip())
        column = graph.root.key[0]
        if match is None or not any(match.groups()):
            raise ConfigurationError(f"--range is FIRST..LAST, FIRST.. or ..LAST, such as 1000..1999, not {text!r}")
        if column.type not in _INTEGERS:
            raise ConfigurationError(
                f"--range needs a key that begins with an integer, and {graph.root.table.name} has {column.name} first:"
                " leave the option out to compare all documents"
            )
        low, high = (None if part is None else int(part) for part in match.groups())
        if low is not None and high is not None and low > high:
            raise ConfigurationError(f"--range {text} is empty: {low} is greater than {high}")
        return cls(graph, low, high)

    @property
    def condition(self) -> str:
        """Return the SQL condition of root rows `c` in the range."""
        name = f"c.{quote_name(self.graph.root.key[0].name)}"
        limits = [f"{name} >= {self.low}" if self.low is not None else "", f"{name} <= {self.high}"]
        return " AND ".join(limit for limit in (limits if self.high is not None else limits[:1]) if limit)

    def has_id(self, name: str) -> bool:
        """Return whether the document with an id lies in the range; one that no row can have does not."""
        try:
            key = parse_document_id(name, self.graph.root.key)
        except (ValueError, ArithmeticError, PenstockError):
            return False
        first: KeyValue | None = None if key is None else key[0]
        if not isinstance(first, int):
            return False
        return (self.low is None or first >= self.low) and (self.high is None or first <= self.high)
