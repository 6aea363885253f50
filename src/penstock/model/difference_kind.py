"""The kinds of differences between a database and what is kept equal to it."""

from enum import StrEnum


class DifferenceKind(StrEnum):
    """The way in which a document of an index, or a row of a mirror, differs from the database."""

    MISSING = "missing"  # the index or the mirror does not have it
    STALE = "stale"  # it has another content
    EXTRA = "extra"  # the database does not have it
