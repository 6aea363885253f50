"""A document spec checked against the live tables: the SQL that builds documents, and how each field is searched.

Documents are built by plain reads, which lock nothing and wait for no lock.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.document.spec import DocumentSpec, Join
from penstock.errors import SchemaError
from penstock.model import Column, TableName, TableSchema, WireType
from penstock.search.index import FieldKind

_INTEGERS = {WireType.TINY, WireType.SHORT, WireType.INT24, WireType.LONG, WireType.LONGLONG, WireType.YEAR}
_REALS = {WireType.FLOAT, WireType.DOUBLE, WireType.NEWDECIMAL}
_DATES = {WireType.DATE, WireType.DATETIME2, WireType.TIMESTAMP2}


@dataclass(frozen=True, slots=True)
class DocumentPlan:
    spec: DocumentSpec
    fields: Mapping[str, FieldKind]  # of the document, `join.column` for joined ones
    select: str  # up to WHERE; gives the id, then the fields in their order
    conditions: tuple[str, ...]
    condition_values: tuple[object, ...]

    @classmethod
    def of(cls, spec: DocumentSpec, tables: Mapping[TableName, TableSchema]) -> "DocumentPlan":
        root = tables[TableName.parse(spec.root.table)]
        if root.key != (spec.root.id,):
            raise SchemaError(
                f"document '{spec.index}': the id must be the primary key of {root.name}, which is"
                f" ({', '.join(root.key) or 'missing'}), not {spec.root.id}"
            )
        _check_key(root, spec)
        fields = {name: _kind(_column(root, name, spec)) for name in spec.root.columns}
        chosen = [f"root.{_quoted(name)}" for name in spec.root.columns]
        joined = ""
        for name, join in spec.joins.items():
            table = tables[TableName.parse(join.table)]
            _column(root, join.root_column, spec)
            _column(table, join.key, spec)
            if table.key != (join.key,):
                raise SchemaError(
                    f"document '{spec.index}': join '{name}' must use the primary key of {table.name},"
                    f" which is ({', '.join(table.key) or 'missing'}), not {join.key}"
                )
            alias = _quoted(f"join {name}")
            for column in join.columns:
                fields[f"{name}.{column}"] = _kind(_column(table, column, spec))
                chosen.append(f"{alias}.{_quoted(column)}")
            chosen.append(f"{alias}.{_quoted(join.key)}")  # tells a missing row from a row of nulls
            on = f"{alias}.{_quoted(join.key)} = root.{_quoted(join.root_column)}"
            joined += f" LEFT JOIN {_table(table.name)} AS {alias} ON {on}"
        conditions, values = _where(spec, root)
        select = (
            f"SELECT root.{_quoted(spec.root.id)}, {', '.join(chosen)} FROM {_table(root.name)} AS root{joined} WHERE "
        )
        return cls(spec, fields, select, conditions, values)

    @property
    def key_columns(self) -> dict[TableName, str]:
        """What the change stream must carry of each table: its key, because documents are read back."""
        root = {TableName.parse(self.spec.root.table): self.spec.root.id}
        return {TableName.parse(join.table): join.key for join in self.spec.joins.values()} | root

    def by_id(self, count: int) -> tuple[str, tuple[object, ...]]:
        """SQL that gives the documents of `count` ids, and the values that follow the ids."""
        wanted = f"root.{_quoted(self.spec.root.id)} IN ({_marks(count)})"
        return f"{self.select}{' AND '.join([wanted, *self.conditions])}", self.condition_values

    def page(self, *, is_first: bool) -> tuple[str, tuple[object, ...]]:
        """SQL that gives the next documents by id; the values come first, then the last id and the limit."""
        key = f"root.{_quoted(self.spec.root.id)}"
        conditions = [*self.conditions, *([] if is_first else [f"{key} > %s"])]
        where = " AND ".join(conditions) or "TRUE"
        return f"{self.select}{where} ORDER BY {key} LIMIT %s", self.condition_values

    def roots_of(self, join: Join, count: int, *, is_first: bool) -> str:
        """SQL that gives ids of root rows that refer to `count` joined keys; then the last id, then the limit."""
        key = f"root.{_quoted(self.spec.root.id)}"
        after = "" if is_first else f" AND {key} > %s"
        return (
            f"SELECT {key} FROM {_table(TableName.parse(self.spec.root.table))} AS root"
            f" WHERE root.{_quoted(join.root_column)} IN ({_marks(count)}){after} ORDER BY {key} LIMIT %s"
        )


def _where(spec: DocumentSpec, root: TableSchema) -> tuple[tuple[str, ...], tuple[object, ...]]:
    conditions: list[str] = []
    values: list[object] = []
    for name, one_of in spec.root.where.items():
        _column(root, name, spec)
        conditions.append(f"root.{_quoted(name)} IN ({_marks(len(one_of))})")
        values += one_of
    return tuple(conditions), tuple(values)


def _column(table: TableSchema, name: str, spec: DocumentSpec) -> Column:
    column = table.column(name)
    if column is None:
        known = ", ".join(column.name for column in table.columns)
        raise SchemaError(f"document '{spec.index}': table {table.name} has no column {name}; it has {known}")
    return column


def _check_key(root: TableSchema, spec: DocumentSpec) -> None:
    """Keys that are the same text in the log, in a SELECT and as the id of a document."""
    column = _column(root, spec.root.id, spec)
    is_text = column.type in (WireType.VARCHAR, WireType.STRING) and column.charset not in ("", "binary")
    if column.type not in _INTEGERS and not is_text:
        raise SchemaError(
            f"document '{spec.index}': the id {root.name}.{column.name} has type {column.type.name};"
            " documents are identified by a whole number or a text"
        )


def _kind(column: Column) -> FieldKind:
    if column.type in _INTEGERS:
        return FieldKind.INTEGER
    if column.type in _REALS:
        return FieldKind.FLOAT
    if column.type in _DATES:
        return FieldKind.DATE
    if column.type in (WireType.ENUM, WireType.SET) or column.charset in ("", "binary"):
        return FieldKind.KEYWORD
    return FieldKind.TEXT


def _quoted(name: str) -> str:
    # Doubled percent signs: the driver reads single ones as places for values.
    return "`" + name.replace("`", "``").replace("%", "%%") + "`"


def _table(name: TableName) -> str:
    return f"{_quoted(name.schema)}.{_quoted(name.table)}"


def _marks(count: int) -> str:
    return ", ".join(["%s"] * count)
