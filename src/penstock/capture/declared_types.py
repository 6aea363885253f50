"""Answers which SQL types the columns of a block's tables were declared with."""

from collections.abc import Callable

from penstock.binlog.events.block import Block
from penstock.capture.table_map_completion import declared_column_types, find_row_positions
from penstock.capture.tracked_catalogue import catalogue_or_none, is_uniform
from penstock.schema.catalogue import Catalogue
from penstock.schema.declared import BlockColumnTypes, logged_column_types
from penstock.schema.history import SchemaHistory

_REMEMBERED = 1 << 16  # table maps


class DeclaredTypes:
    """The declared types of tables, remembered as long as the tables stay the same. Called with the lock of the
    tracker that owns it; the functions that it returns need no lock.

        types = DeclaredTypes(history).of_block(block)
        types.of_table(table_id)  # ("int(11)", "varchar(40)")
    """

    def __init__(self, history: SchemaHistory) -> None:
        self._history = history
        self._declared: dict[tuple[bytes, str], tuple[str, ...]] = {}  # by table map and server version
        self._declared_in: Catalogue | None = None  # as long as the tables are these

    def of_block(self, block: Block) -> BlockColumnTypes:
        """Return the SQL types of the columns of a block's tables."""
        if not is_uniform(self._history, block):
            return BlockColumnTypes(self._types_by_position(block))
        catalogue = catalogue_or_none(self._history, block.start)
        if catalogue is None:
            return logged_column_types(block)
        if self._declared_in is not catalogue or len(self._declared) >= _REMEMBERED:
            self._declared_in, self._declared = catalogue, {}
        known, version, tables = self._declared, block.server_version, block.tables

        def types(number: int) -> tuple[str, ...]:
            key = tables[number], version
            declared = known.get(key)
            if declared is None:
                declared = known[key] = declared_column_types(block.schema_of(number), catalogue, version)
            return declared

        return BlockColumnTypes(types, catalogue)

    def _types_by_position(self, block: Block) -> Callable[[int], tuple[str, ...]]:
        """Return the declared types of each table where the block has its first rows: the statement that created the
        table may be in the same block."""
        catalogues = {
            number: catalogue_or_none(self._history, first) for number, (first, _) in find_row_positions(block).items()
        }
        begin = catalogue_or_none(self._history, block.start)

        def types(number: int) -> tuple[str, ...]:
            return declared_column_types(block.schema_of(number), catalogues.get(number, begin), block.server_version)

        return types
