"""What happened to a row; the texts are those of Delta's change feed and Spark's own change queries."""

from enum import IntEnum


class ChangeKind(IntEnum):
    """The kind of change that a row image of the binlog belongs to. The number is what the compiled decoders write into
    Arrow columns; `text` is the name that users see."""

    INSERT = 0
    UPDATE_PREIMAGE = 1
    UPDATE_POSTIMAGE = 2
    DELETE = 3

    @property
    def text(self) -> str:
        """Return the kind as users see it, such as `update_postimage`."""
        return self.name.lower()
