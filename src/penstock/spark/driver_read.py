"""Reads ranges of the log in the driver itself: a Spark job that only brings the rows here takes 40 ms and more.

Invariant: a range has the rows that Spark would bring. Of their images it has only the columns that are asked for, and
no other is decoded.
"""

from collections.abc import Mapping

import pyarrow as pa

from penstock.config import ColumnSettings
from penstock.filter import ColumnRules
from penstock.model import Column, Position, TableName, TableSchema
from penstock.model.table_rules import TableRules
from penstock.spark.change_log import ChangeLog
from penstock.spark.generic_layout import GenericLayout
from penstock.spark.options import ReadOptions

UsedColumns = Mapping[TableName, frozenset[str]]


class DriverReader:
    """Reads the changes of a query with a `filter` in this process.

    reader = DriverReader(ReadOptions.of({"server": …, "filter": …, "includeDdl": "true"}))
    changes = reader.read_range(start, end, {TableName("shop", "product"): frozenset({"id", "name"})})
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options, self._log = options, ChangeLog(options)
        self._rules: ColumnRules | None = None  # which columns the server shows
        self._used: UsedColumns | None = None
        self._layout: GenericLayout | None = None  # of the columns in use

    def read_range(self, start: Position, end: Position, used: UsedColumns | None) -> pa.Table:
        """Return the changes of a range in the order of the log, with these columns of their images; None: all."""
        layout, log = self._layout_of(used), self._log
        batches = [batch for ticket in log.tickets(start, end) for batch in log.read_rows(ticket, layout)]
        return pa.Table.from_batches(batches, layout.schema)

    def _layout_of(self, used: UsedColumns | None) -> GenericLayout:
        """Return the layout of images with these columns; what it knows of tables serves the next batch, too."""
        if self._layout is None or used != self._used:
            self._used, self._layout = used, self._create_layout(used)
        return self._layout

    def _create_layout(self, used: UsedColumns | None) -> GenericLayout:
        """Return a new layout of images with these columns."""
        if self._rules is None:
            settings = [ColumnSettings.model_validate(settings) for settings in self._log.client.column_settings()]
            self._rules = ColumnRules.from_settings(settings)
        rules = self._rules

        def columns_of(table: TableSchema) -> list[Column]:
            shown = rules.columns_to_show(table)
            names = None if used is None else used.get(table.name)
            return [column for column in shown if names is None or column.name in names]

        tables = TableRules.parse(self._options.filter)
        return GenericLayout(tables, include_ddl=self._options.includes_ddl, columns_of=columns_of)
