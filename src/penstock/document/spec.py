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


class _Spec(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _check_table(value: str) -> str:
    try:
        TableName.parse(value)
    except ConfigurationError as error:
        raise ValueError(str(error)) from None
    return value


def _check_columns(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Names of columns are compared as MySQL compares them, in any case."""
    named: dict[str, str] = {}
    for column in columns:
        if (first := named.get(column.casefold())) is not None:
            raise ValueError(f"the column {column} is named twice" + (f", first as {first}" if first != column else ""))
        named[column.casefold()] = column
    return columns


def _one_or_more(value: Any) -> Any:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


class Root(_Spec):
    table: str
    id: str = "id"
    columns: tuple[str, ...] = Field(min_length=1)
    where: dict[str, Annotated[list[Scalar], Field(min_length=1), BeforeValidator(_one_or_more)]] = {}

    _table = field_validator("table")(_check_table)
    _columns = field_validator("columns")(_check_columns)


class Join(_Spec):
    table: str
    on: dict[str, str] = Field(min_length=1, max_length=1)
    columns: tuple[str, ...] = Field(min_length=1)

    _table = field_validator("table")(_check_table)
    _columns = field_validator("columns")(_check_columns)

    @property
    def root_column(self) -> str:
        return next(iter(self.on))

    @property
    def key(self) -> str:
        return next(iter(self.on.values()))


class DocumentSpec(_Spec):
    index: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    root: Root
    joins: dict[str, Join] = {}

    @property
    def tables(self) -> tuple[TableName, ...]:
        """Root first, each once."""
        names = [self.root.table, *(join.table for join in self.joins.values())]
        return tuple(TableName.parse(name) for name in dict.fromkeys(names))


def load_spec(path: Path) -> DocumentSpec:
    return load_yaml(path, DocumentSpec)
