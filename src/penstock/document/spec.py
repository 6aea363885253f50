"""The document spec: one YAML file that says what an index holds.

index: product
root:
  table: shop.product
  id: id
  columns: [name, price, state]
  where: {state: [on_sale, sold_out]}     # others are not searchable
joins:
  store:                                  # becomes an object of this name
    table: shop.store
    on: {store_id: id}                    # column of the root: column of the joined table
    columns: [name, city]
"""

from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from penstock.config.yaml_file import load_yaml
from penstock.errors import ConfigurationError
from penstock.model import TableName

Scalar = str | int | float | bool


class _SpecModel(BaseModel):
    """Base of the models of a spec: unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _check_table(value: str) -> str:
    """Return the name of a table as `database.table`, or raise."""
    try:
        TableName.parse(value)
    except ConfigurationError as error:
        raise ValueError(str(error)) from None
    return value


def _check_columns(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse columns that are named twice; names are compared as MySQL does, ignoring case."""
    named: dict[str, str] = {}
    for column in columns:
        if (first := named.get(column.casefold())) is not None:
            raise ValueError(f"the column {column} is named twice" + (f", first as {first}" if first != column else ""))
        named[column.casefold()] = column
    return columns


def _as_list(value: Any) -> Any:
    """Return a single value as a list."""
    return cast("list[Any]", value) if isinstance(value, list) else [value]


class RootSpec(_SpecModel):
    """The table whose rows become documents."""

    table: str
    id: str = "id"
    columns: tuple[str, ...] = Field(min_length=1)
    where: dict[str, Annotated[list[Scalar], Field(min_length=1), BeforeValidator(_as_list)]] = {}

    _table = field_validator("table")(_check_table)
    _columns = field_validator("columns")(_check_columns)


class JoinSpec(_SpecModel):
    """A table whose row becomes an object in the document."""

    table: str
    on: dict[str, str] = Field(min_length=1, max_length=1)
    columns: tuple[str, ...] = Field(min_length=1)

    _table = field_validator("table")(_check_table)
    _columns = field_validator("columns")(_check_columns)

    @property
    def root_column(self) -> str:
        """Return the column of the root that refers to the joined table."""
        return next(iter(self.on))

    @property
    def key(self) -> str:
        """Return the column of the joined table that the root table refers to."""
        return next(iter(self.on.values()))


class DocumentSpec(_SpecModel):
    """What an index holds: a root table and the tables joined to it."""

    index: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    root: RootSpec
    joins: dict[str, JoinSpec] = {}

    @property
    def tables(self) -> tuple[TableName, ...]:
        """Return all tables, the root first, each once."""
        names = [self.root.table, *(join.table for join in self.joins.values())]
        return tuple(TableName.parse(name) for name in dict.fromkeys(names))


def load_spec(path: Path) -> DocumentSpec:
    """Read and check a document spec."""
    return load_yaml(path, DocumentSpec)
