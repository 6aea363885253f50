"""A range of documents by the first column of their key, for which it must be an integer."""

from dataclasses import dataclass

from penstock.document.document_id import parse_document_id
from penstock.document.graph import DocumentGraph
from penstock.errors import ConfigurationError, PenstockError
from penstock.model import WireType
from penstock.model.integer_range import IntegerRange
from penstock.snapshot.key_column import quote_name

_INTEGERS = {WireType.TINY, WireType.SHORT, WireType.INT24, WireType.LONG, WireType.LONGLONG}


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Documents whose key begins with an integer of a range.

    keys = KeyRange.parse("1000..1999", graph)
    """

    graph: DocumentGraph
    integers: IntegerRange

    @classmethod
    def parse(cls, text: str, graph: DocumentGraph) -> "KeyRange":
        """Return the range that a text such as `1000..1999`, `1000..` or `..1999` means for the documents of a graph.
        Raises ConfigurationError for another text, and for documents whose key does not begin with an integer."""
        integers = IntegerRange.parse(text)
        if not has_integer_key(graph):
            raise ConfigurationError(
                f"--range needs a key that begins with an integer, and {graph.root.table.name} has"
                f" {graph.root.key[0].name} first: leave the option out to compare all documents"
            )
        return cls(graph, integers)

    @property
    def condition(self) -> str:
        """Return the SQL condition of root rows `c` in the range."""
        name, low, high = f"c.{quote_name(self.graph.root.key[0].name)}", self.integers.low, self.integers.high
        limits = [f"{name} >= {low}" if low is not None else "", f"{name} <= {high}" if high is not None else ""]
        return " AND ".join(filter(None, limits))

    def has_id(self, name: str) -> bool:
        """Return whether the document with an id lies in the range; one that no row can have does not."""
        number = find_key_number(name, self.graph)
        return number is not None and number in self.integers


def has_integer_key(graph: DocumentGraph) -> bool:
    """Return whether the key of documents begins with an integer."""
    return graph.root.key[0].type in _INTEGERS


def find_key_number(name: str, graph: DocumentGraph) -> int | None:
    """Return the integer with which the key of the document with an id begins; None where no row can have that id."""
    try:
        key = parse_document_id(name, graph.root.key)
    except (ValueError, ArithmeticError, PenstockError):
        return None
    first = None if key is None else key[0]
    return first if isinstance(first, int) else None
