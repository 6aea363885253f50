"""A document spec checked against the live tables: the SQL that builds documents, and how each field is searched.

Documents are built by plain reads, which lock nothing and wait for no lock.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.document.spec import DocumentSpec, JoinSpec
from penstock.errors import SchemaError
from penstock.model import Column, TableName, TableSchema, WireType
from penstock.search.index import FieldKind

_INTEGERS = {WireType.TINY, WireType.SHORT, WireType.INT24, WireType.LONG, WireType.LONGLONG, WireType.YEAR}
_REALS = {WireType.FLOAT, WireType.DOUBLE, WireType.NEWDECIMAL}
_DATES = {WireType.DATE, WireType.DATETIME2, WireType.TIMESTAMP2}


@dataclass(frozen=True, slots=True)
class DocumentPlan:
    """The SQL that builds the documents of a spec, and how each field is searched, checked against the live tables."""

    spec: DocumentSpec
    fields: Mapping[str, FieldKind]  # of the document, `join.column` for joined ones
    select: str  # up to WHERE; gives the id, then the fields in their order
    conditions: tuple[str, ...]
    condition_values: tuple[object, ...]

    @classmethod
    def from_spec(cls, spec: DocumentSpec, tables: Mapping[TableName, TableSchema]) -> "DocumentPlan":
        """Build the plan of a spec; a column or key that does not fit is a ConfigurationError."""
        root = tables[TableName.parse(spec.root.table)]
        if root.key != (spec.root.id,):
            raise SchemaError(
                f"document '{spec.index}': the id must be the primary key of {root.name}, which is"
                f" ({', '.join(root.key) or 'missing'}), not {spec.root.id}"
            )
        _check_key(root, spec)
        fields = {name: _field_kind(_find_column(root, name, spec)) for name in spec.root.columns}
        chosen = [f"root.{_quote_name(name)}" for name in spec.root.columns]
        joined = ""
        for name, join in spec.joins.items():
            table = tables[TableName.parse(join.table)]
            _find_column(root, join.root_column, spec)
            _find_column(table, join.key, spec)
            if table.key != (join.key,):
                raise SchemaError(
                    f"document '{spec.index}': join '{name}' must use the primary key of {table.name},"
                    f" which is ({', '.join(table.key) or 'missing'}), not {join.key}"
                )
            alias = _quote_name(f"join {name}")
            for column in join.columns:
                fields[f"{name}.{column}"] = _field_kind(_find_column(table, column, spec))
                chosen.append(f"{alias}.{_quote_name(column)}")
            chosen.append(f"{alias}.{_quote_name(join.key)}")  # tells a missing row from a row of nulls
            on = f"{alias}.{_quote_name(join.key)} = root.{_quote_name(join.root_column)}"
            joined += f" LEFT JOIN {_quote_table(table.name)} AS {alias} ON {on}"
        conditions, values = _build_conditions(spec, root)
        columns = f"root.{_quote_name(spec.root.id)}, {', '.join(chosen)}"
        select = f"SELECT {columns} FROM {_quote_table(root.name)} AS root{joined} WHERE "
        return cls(spec, fields, select, conditions, values)

    @property
    def key_columns(self) -> dict[TableName, str]:
        """Return what the change stream must carry of each table: its key, because documents are read back."""
        root = {TableName.parse(self.spec.root.table): self.spec.root.id}
        return {TableName.parse(join.table): join.key for join in self.spec.joins.values()} | root

    def select_by_id(self, count: int) -> tuple[str, tuple[object, ...]]:
        """Return the SQL that reads the documents of `count` ids, and the values that follow the ids."""
        wanted = f"root.{_quote_name(self.spec.root.id)} IN ({_placeholders(count)})"
        return f"{self.select}{' AND '.join([wanted, *self.conditions])}", self.condition_values

    def select_page(self, *, is_first: bool) -> tuple[str, tuple[object, ...]]:
        """Return the SQL that reads the next documents by id; its values come first, then the last id and the limit."""
        key = f"root.{_quote_name(self.spec.root.id)}"
        conditions = [*self.conditions, *([] if is_first else [f"{key} > %s"])]
        where = " AND ".join(conditions) or "TRUE"
        return f"{self.select}{where} ORDER BY {key} LIMIT %s", self.condition_values

    def select_roots(self, join: JoinSpec, count: int, *, is_first: bool) -> str:
        """Return the SQL that reads ids of root rows that refer to `count` joined keys; then the last id, then the
        limit.
        """
        key = f"root.{_quote_name(self.spec.root.id)}"
        after = "" if is_first else f" AND {key} > %s"
        return (
            f"SELECT {key} FROM {_quote_table(TableName.parse(self.spec.root.table))} AS root"
            f" WHERE root.{_quote_name(join.root_column)} IN ({_placeholders(count)}){after} ORDER BY {key} LIMIT %s"
        )


def _build_conditions(spec: DocumentSpec, root: TableSchema) -> tuple[tuple[str, ...], tuple[object, ...]]:
    """Return the SQL conditions of a spec, and their values."""
    conditions: list[str] = []
    values: list[object] = []
    for name, one_of in spec.root.where.items():
        _find_column(root, name, spec)
        conditions.append(f"root.{_quote_name(name)} IN ({_placeholders(len(one_of))})")
        values += one_of
    return tuple(conditions), tuple(values)


def _find_column(table: TableSchema, name: str, spec: DocumentSpec) -> Column:
    """Return a column of a table; ConfigurationError if there is none."""
    column = table.column(name)
    if column is None:
        known = ", ".join(column.name for column in table.columns)
        raise SchemaError(f"document '{spec.index}': table {table.name} has no column {name}; it has {known}")
    return column


def _check_key(root: TableSchema, spec: DocumentSpec) -> None:
    """Refuse keys that are not the same text in the log, in a SELECT and as the id of a document."""
    column = _find_column(root, spec.root.id, spec)
    is_text = column.type in (WireType.VARCHAR, WireType.STRING) and column.charset not in ("", "binary")
    if column.type not in _INTEGERS and not is_text:
        raise SchemaError(
            f"document '{spec.index}': the id {root.name}.{column.name} has type {column.type.name};"
            " documents are identified by a whole number or a text"
        )


def _field_kind(column: Column) -> FieldKind:
    """Return how a column is searched."""
    if column.type in _INTEGERS:
        return FieldKind.INTEGER
    if column.type in _REALS:
        return FieldKind.FLOAT
    if column.type in _DATES:
        return FieldKind.DATE
    if column.type in (WireType.ENUM, WireType.SET) or column.charset in ("", "binary"):
        return FieldKind.KEYWORD
    return FieldKind.TEXT


def _quote_name(name: str) -> str:
    """Return an identifier in backquotes."""
    # Doubled percent signs: the driver reads single ones as places for values.
    return "`" + name.replace("`", "``").replace("%", "%%") + "`"


def _quote_table(name: TableName) -> str:
    """Return a table name in backquotes."""
    return f"{_quote_name(name.schema)}.{_quote_name(name.table)}"


def _placeholders(count: int) -> str:
    """Return so many placeholders with commas between them."""
    return ", ".join(["%s"] * count)
