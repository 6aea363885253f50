"""Which documents are built from the row images of the log, and which are read back from the database.

A document can be built from the image of its root row when it depends on nothing else, and when the texts of all of its
values in the image are those that a read gives.

| of the spec                       | built from the log                                                            |
|-----------------------------------|-------------------------------------------------------------------------------|
| joins, foreign keys that cascade  | no: the document depends on other rows                                        |
| fields                            | columns and constants; not `sql`, which the source evaluates                  |
| `where` as SQL                    | no                                                                            |
| `where` as a mapping              | integer columns; texts are compared by a collation, which the source knows    |
| `soft_delete`                     | yes: no digit but 0 means zero, for numbers, dates and times alike            |
| `transform`                       | no: its function gets what a read gives                                       |
| a table with system versioning    | no: the log has rows of its history, and a delete is an update                |
"""

from collections.abc import Iterator

from penstock.binlog.values.column import Family, kernel_family_of
from penstock.document.graph import DocumentGraph
from penstock.model import Column

# Types whose text in a row image may be another one than that of a read: documents with such a field are read back.
# The log does not tell these from BINARY, so that images have their bytes.
_LOGGED_AS_BYTES = {Family.UUID, Family.INET4, Family.INET6}
# Labels of ENUM and SET in these charsets are spoilt by MySQL 5.7, in a read otherwise than in its catalogue.
_LABELS = {Family.ENUM, Family.SET}
_SPOILT_CHARSETS = {"ucs2", "utf16", "utf16le", "utf32"}

_ZERO_FAMILIES = {
    Family.INTEGER, Family.DECIMAL, Family.BIT, Family.DATE, Family.TIME, Family.DATETIME, Family.TIMESTAMP,
}  # fmt: skip


def find_read_back_reasons(graph: DocumentGraph) -> list[str]:
    """Return why documents of a graph are read back; without a reason they are built from the log."""
    return [*_find_other_rows(graph), *_find_fields(graph), *_find_conditions(graph)]


def _find_other_rows(graph: DocumentGraph) -> Iterator[str]:
    """Yield the reasons that are about other rows than the document's own."""
    if graph.root.children:
        yield "it has joins"
    if graph.references:
        yield "a foreign key that cascades changes rows that the log does not have"
    if graph.spec.transform is not None:
        yield "it has a transform"
    if graph.keeps_history:
        yield f"{graph.root.table.name} has system versioning, and the log has the rows of its history"


def _find_fields(graph: DocumentGraph) -> Iterator[str]:
    """Yield the reasons that are about fields and the routing."""
    for part in graph.root.fields:
        if part.sql:
            yield f"field {part.name} is an SQL expression"
        elif part.column is not None and (reason := _find_unequal_type(part.column)):
            yield f"field {part.name} {reason}"
    if graph.routing is not None and (reason := _find_unequal_type(graph.routing)):
        yield f"routing {reason}"


def _find_unequal_type(column: Column) -> str:
    """Return why the text of a column may be another one in a row image than in a read; nothing when it is the same."""
    family = kernel_family_of(column)[0]
    if family in _LOGGED_AS_BYTES:
        return f"is {column.declared.upper()}, which the log does not tell from BINARY"
    return f"has labels in {column.charset}" if family in _LABELS and column.charset in _SPOILT_CHARSETS else ""


def _find_conditions(graph: DocumentGraph) -> Iterator[str]:
    """Yield the reasons that are about which rows are searchable."""
    root, table = graph.spec.root, graph.root.table
    families = {column.name.casefold(): kernel_family_of(column)[0] for column in table.declared_columns}
    if isinstance(root.where, str):
        yield "where is an SQL condition"
    else:
        for name, values in (root.where or {}).items():
            if families[name.casefold()] is not Family.INTEGER or not all(isinstance(value, int) for value in values):
                yield f"where compares {name}, which only the database does exactly"
    if root.soft_delete and families[root.soft_delete.casefold()] not in _ZERO_FAMILIES:
        yield f"soft_delete names {root.soft_delete}, which only the database compares exactly"
