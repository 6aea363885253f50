"""What capture knows of each table beside its history: the last schema seen in the log, whether it is stopped, and how
the history differs from the log."""

import logging

from penstock.capture.table_map_completion import CompletedMap
from penstock.model import Position, TableName
from penstock.schema.catalogue import AppliedStatement

log = logging.getLogger(__name__)


class TableStates:
    """The states of the tables of one instance. Called with the lock of the tracker that owns it.

    states = TableStates("shop")
    states.note(TableName("shop", "product"), completed, position)
    """

    def __init__(self, destination: str = "") -> None:
        self._destination = destination
        self.differences: dict[TableName, str] = {}
        self.stopped: dict[TableName, str] = {}
        self.seen: dict[TableName, tuple[bytes, str]] = {}  # the last table map, server version

    def note(self, name: TableName, shape: CompletedMap, position: Position) -> None:
        """Remember that a table is stopped, or that the history differs from the log, and log each change of that
        once."""
        if not shape.problem:
            self.stopped.pop(name, None)
        elif name not in self.stopped:
            log.warning(
                "table schema unknown, delivery of the table halted destination=%s position=%s reason=%s",
                self._destination, position, shape.problem,
            )  # fmt: skip
            self.stopped[name] = f"{position}: {shape.problem}"
        if not shape.difference:
            self.differences.pop(name, None)
        elif self.differences.get(name) != shape.difference:
            log.warning(
                "schema history differs from binlog destination=%s table=%s position=%s difference=%s: the binlog is"
                " used",
                self._destination, name, position, shape.difference,
            )  # fmt: skip
            self.differences[name] = shape.difference

    def forget_changed(self, applied: AppliedStatement) -> None:
        """Forget what was known of the tables that a statement changed."""
        for name in applied.altered | applied.created | applied.unknown | {new for _, new in applied.renamed}:
            self.seen.pop(name, None)
        for name in applied.dropped | {old for old, _ in applied.renamed}:
            self.seen.pop(name, None)
            self.stopped.pop(name, None)
            self.differences.pop(name, None)
