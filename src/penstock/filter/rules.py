"""Settings, compiled: which table ids of a block pass, which statements do. Never changes; a reload makes new ones."""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.query import parse_query_at
from penstock.binlog.events.table_map import table_name
from penstock.config import FilterSettings
from penstock.config.filter_settings import DEFAULT_KINDS
from penstock.filter.column_rules import ColumnRules
from penstock.filter.kinds import filter_kind, row_types_of
from penstock.model.table_rules import TableRules
from penstock.schema.ddl import StatementKind, classify_statement_text
from penstock.schema.ddl.subject import find_subject
from penstock.schema.dialect import ServerProfile, SqlDialect, SqlMode, SqlSession

_REMEMBERED = 1 << 16  # table maps, statements


class FilterRules:
    """Compiled filter settings: which tables, statements, columns and kinds of change pass. Immutable: a reload
    compiles new ones."""

    def __init__(self, settings: FilterSettings) -> None:
        self.kinds = settings.kinds
        self.tables = TableRules.parse(settings.allow, settings.deny)
        self.columns = ColumnRules.from_settings(settings.columns)
        self.rows_kinds = row_types_of(settings.kinds)
        self._passing: set[bytes] = set()  # table maps, as the next
        self._excluded: set[bytes] = set()
        self._wants = lru_cache(_REMEMBERED)(self._passes_statement)

    @property
    def passes_all_tables(self) -> bool:
        """Return whether no allow or deny list restricts the tables."""
        return not self.tables.allow and not self.tables.deny

    @property
    def passes_all_rows(self) -> bool:
        """Return whether rows of all kinds pass, with what frames them; statements are not considered."""
        return {*self.kinds} >= {*DEFAULT_KINDS}

    def excluded_ids(self, tables: Mapping[int, bytes]) -> list[int]:
        """Return the ids of the tables that the rules exclude, given TABLE_MAP bodies by table id."""
        if self._passing.issuperset(tables.values()):
            return []
        if len(self._passing) + len(self._excluded) > _REMEMBERED:
            self._passing, self._excluded = set(), set()
        passing, excluded = self._passing, self._excluded
        for body in {*tables.values()} - passing - excluded:
            (passing if self.tables.passes(table_name(body)) else excluded).add(body)
        return [number for number, body in tables.items() if body not in passing]

    def passing_statements(self, block: Block, statements: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return a mask of the events among `statements` that pass."""
        mask = np.zeros(len(block), np.bool_)
        for event in np.flatnonzero(statements).tolist():
            query = parse_query_at(block, event)
            mask[event] = self._wants(query.text, query.database, query.sql_mode or 0, block.server_version)
        return mask

    def _passes_statement(self, text: str, database: str, sql_mode: int, version: str) -> bool:
        """Return whether a statement passes: it does if any table that it changes passes, if it changes none, or if
        that cannot be told."""
        dialect = SqlDialect(ServerProfile.from_version_text(version), SqlSession(SqlMode(sql_mode)))
        kind = classify_statement_text(text, dialect)
        if kind is StatementKind.TRANSACTION:  # it may take back rows that are wanted
            return True
        if filter_kind(kind) not in self.kinds:
            return False
        tables = find_subject(text, kind, dialect, database).tables
        return not tables or any(map(self.tables.passes, tables))
