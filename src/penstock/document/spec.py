"""The document spec: one YAML file that says what an index holds.

index: orders
transform: orders_hook.py:enrich          # a function in Python, for what the rest cannot say
root:
  table: shop.orders
  where: "state <> 'draft'"               # rows that do not match are not searchable
  fields: [number, state, {gross: {sql: total * 1.2}}]
  joins:
    customer:                             # an object, or null
      table: shop.customer
      on: {customer_id: id}               # column of the table above: column of this table
      fields: [name, city]
    lines:                                # an ordered array of objects
      table: shop.order_line
      many: true
      on: {id: order_id}
      order: position
      fields: [quantity, price]
    tags:                                 # through a link table
      table: shop.tag
      many: true
      through: {table: shop.order_tag, on: {id: order_id}, to: {tag_id: id}}
      fields: [name]
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator

from penstock.config.yaml_file import load_yaml
from penstock.document.python_function import PythonFunction
from penstock.errors import ConfigurationError
from penstock.model import TableName
from penstock.schema.shape import fold
from penstock.search.index import FieldKind

Scalar = str | int | float | bool
_INDEX_NAME = r"^[a-z0-9][a-z0-9_-]*$"
_MOST_DEPTH = 8


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


def _as_list(value: Any) -> Any:
    """Return a single value as a list."""
    return cast("list[Any]", value) if isinstance(value, list | tuple) else [value]


def _read_field(value: Any) -> Any:
    """Return what a field is made of; a text is the name of a column."""
    return {"column": value} if isinstance(value, str) else value


def _read_fields(value: Any) -> Any:
    """Return fields by name, from a mapping or from a list of columns and single fields."""
    if not isinstance(value, list):
        return cast("dict[str, Any]", value)
    fields: dict[str, Any] = {}
    named: dict[str, str] = {}
    for item in cast("list[Any]", value):
        entries: Any = {item: item} if isinstance(item, str) else item
        if not isinstance(entries, Mapping):
            raise ValueError("a field is the name of a column, or `field: column`")  # noqa: TRY004 - of the file
        for name, content in cast("Mapping[str, Any]", entries).items():
            # Names are compared as MySQL does, ignoring case.
            if (first := named.get(str(name).casefold())) is not None:
                raise ValueError(f"the field {name} is named twice" + (f", first as {first}" if first != name else ""))
            named[str(name).casefold()] = str(name)
            fields[name] = content
    return fields


def _read_where(value: Any) -> Any:
    """Return a condition, with a list of values for each column; what is neither SQL nor that is refused here, because
    the error of a union would not name the key."""
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, Mapping):
        raise ValueError("a condition is SQL, or columns with their values")  # noqa: TRY004 - of the file
    conditions: dict[str, Any] = {}
    for name, content in cast("Mapping[str, Any]", value).items():
        conditions[name] = values = cast("list[Any]", _as_list(content))
        if not values:
            raise ValueError(f"{name} has no values, so no row would match")
        if wrong := [item for item in values if not isinstance(item, str | int | float)]:
            raise ValueError(f"{name} is compared with {wrong[0]!r}, which is no text and no number")
    return conditions


def _find_function(value: Any, info: ValidationInfo) -> Any:
    """Return the function that a text names; a file is looked for in the folder that the context of the validation has,
    else in the current one."""
    if not isinstance(value, str):
        raise ValueError("a function is named as FILE.py:FUNCTION, or package.module:FUNCTION")  # noqa: TRY004
    context: Mapping[str, Path] = info.context or {}
    try:
        return PythonFunction.find(value, context.get("folder", Path()))
    except ConfigurationError as error:
        raise ValueError(str(error)) from None


def _read_transform(value: Any) -> Any:
    """Return what a transform is made of; a text names its function."""
    return {"python": value} if isinstance(value, str) else value


TableText = Annotated[str, AfterValidator(_check_table)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_as_list, json_schema_input_type=str | tuple[str, ...])]
Condition = Annotated[
    str | dict[str, list[Scalar]] | None,
    BeforeValidator(
        _read_where,
        json_schema_input_type=str | dict[str, Scalar | Annotated[list[Scalar], Field(min_length=1)]] | None,
    ),
]
ColumnPairs = Annotated[dict[str, str], Field(min_length=1)]


class DocumentFieldSpec(_SpecModel):
    """One field of a document: a column, an SQL expression over the columns of its table, or a constant."""

    column: str | None = Field(default=None, description="Column of the table whose value the field has.")
    sql: str | None = Field(
        default=None,
        min_length=1,
        description="SQL expression over the columns of the table, which the source evaluates, such as `total * 1.2`.",
    )
    value: Scalar | None = Field(default=None, description="Constant that every document has.")
    type: FieldKind | None = Field(
        default=None,
        description="The way in which the field is searched. Default: by the type of the column, of the expression or"
        " of the constant.",
    )

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if sum(part is not None for part in (self.column, self.sql, self.value)) != 1:
            raise ValueError("a field has one of `column`, `sql` and `value`")
        return self


FieldContent = Annotated[
    DocumentFieldSpec, BeforeValidator(_read_field, json_schema_input_type=str | DocumentFieldSpec)
]
FieldsByName = Annotated[dict[str, FieldContent], Field(min_length=1)]
DocumentFieldSpecs = Annotated[
    FieldsByName,
    BeforeValidator(
        _read_fields,
        json_schema_input_type=FieldsByName | Annotated[list[str | dict[str, FieldContent]], Field(min_length=1)],
    ),
]


class LinkSpec(_SpecModel):
    """The table in the middle of a many-to-many join."""

    table: TableText = Field(description="Link table, as `database.table`.")
    on: ColumnPairs = Field(description="Column of the table above: column of the link table that equals it.")
    to: ColumnPairs = Field(description="Column of the link table: column of the joined table that equals it.")


class _TableSpec(_SpecModel):
    """A table, the fields that it gives, and the tables that are joined to it."""

    table: TableText = Field(description="Table, as `database.table`.")
    fields: DocumentFieldSpecs = Field(
        description="Fields that the table gives: a list of columns, or a mapping of field names to columns,"
        " expressions and constants."
    )
    joins: "dict[str, JoinSpec]" = Field(
        default={}, description="Tables joined to this one, by the name of the field that holds their rows."
    )


class JoinSpec(_TableSpec):
    """A joined table: its row becomes an object in the document, its rows an array of objects."""

    on: ColumnPairs | None = Field(
        default=None,
        description="Column of the table above: column of this table that equals it. Several pairs must all be equal.",
    )
    through: LinkSpec | None = Field(
        default=None, description="Link table between the table above and this one, instead of `on`."
    )
    many: bool = Field(
        default=False, description="Whether the field is an array of objects. Without it, it is an object or null."
    )
    nested: bool = Field(
        default=False, description="Whether the objects of the array are indexed one by one, for nested queries."
    )
    filter: str | None = Field(
        default=None,
        min_length=1,
        description="SQL condition over the columns of this table; rows that do not match are left out.",
    )
    order: Texts = Field(
        default=(),
        description="Columns by which the array is ordered, `-` before one for descending; then by primary key.",
    )
    limit: int | None = Field(default=None, ge=1, description="Most objects that the array has.")

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if (self.on is None) == (self.through is None):
            raise ValueError("a join has one of `on` and `through`")
        if not self.many and (self.order or self.limit or self.nested):
            raise ValueError("`order`, `limit` and `nested` are for a join with `many: true`")
        return self


class RootSpec(_TableSpec):
    """The table whose rows become documents."""

    id: Texts = Field(
        default=(),
        description="Columns of the document's id: the primary key, which is the default, or another unique key whose"
        " columns are NOT NULL, in the order of the key.",
    )
    routing: str | None = Field(default=None, description="Column of the root table whose value routes the document.")
    where: Condition = Field(
        default=None,
        description="Rows that become documents: an SQL condition over the columns of the table, or a mapping of"
        " columns to the values they may have.",
    )
    soft_delete: str | None = Field(
        default=None, description="Column that marks deleted rows: those with a value other than NULL and 0."
    )


class TransformSpec(_SpecModel):
    """A function of the user that changes documents before they are indexed."""

    python: Annotated[PythonFunction, BeforeValidator(_find_function, json_schema_input_type=str)] = Field(
        description="Function that gets each document as a dict and returns the one to index, or None for none:"
        " `FILE.py:FUNCTION`, with a path relative to the spec, or `package.module:FUNCTION`."
    )
    fields: dict[str, FieldKind] = Field(
        default={},
        description="Fields that the function adds, by their paths (`score`, `customer.initials`), with their types.",
    )


class DocumentSpec(_SpecModel):
    """What an index holds: a root table and the tables joined to it.

    spec = load_spec(Path("product.yml"))
    plan = resolve_spec(spec, schemas)
    """

    index: str = Field(pattern=_INDEX_NAME, description="Name of the index.")
    alias: str | None = Field(
        default=None,
        pattern=_INDEX_NAME,
        description="Name by which readers search. It leads to the index as soon as that is loaded, unless it leads to"
        " another one already.",
    )
    root: RootSpec = Field(description="Table whose rows become documents.")
    transform: Annotated[
        TransformSpec | None, BeforeValidator(_read_transform, json_schema_input_type=str | TransformSpec | None)
    ] = Field(
        default=None,
        description="Function in Python that changes documents before they are indexed; as a text, its `python`.",
    )
    mapping: dict[str, Any] = Field(default={}, description="Merged into the mapping that is derived from the columns.")
    settings: dict[str, Any] = Field(default={}, description="Settings of the index, merged into those that it needs.")

    @model_validator(mode="after")
    def _check_alias(self) -> Self:
        if self.alias == self.index:
            raise ValueError("`alias` is another name than `index`")
        return self

    @model_validator(mode="after")
    def _check_depth(self) -> Self:
        if _depth(self.root.joins) > _MOST_DEPTH:
            raise ValueError(f"joins are nested {_MOST_DEPTH} deep at most")
        return self

    @property
    def tables(self) -> tuple[TableName, ...]:
        """Return all tables, the root first, each once."""
        return tuple(TableName.parse(name) for name in dict.fromkeys(_table_names(self.root)))

    def with_lower_case_tables(self) -> "DocumentSpec":
        """Return the spec with all names of tables in lower case, for a server that stores them so."""
        return self.model_copy(update={"root": _in_lower_case(self.root)})


def _depth(joins: Mapping[str, JoinSpec]) -> int:
    """Return how deep joins are nested."""
    return max((1 + _depth(join.joins) for join in joins.values()), default=0)


_Table = TypeVar("_Table", RootSpec, JoinSpec)


def _in_lower_case(table: _Table) -> _Table:
    """Return a table, and all that is joined to it, with names in lower case."""
    update: dict[str, Any] = {
        "table": fold(table.table),
        "joins": {name: _in_lower_case(join) for name, join in table.joins.items()},
    }
    if isinstance(table, JoinSpec) and table.through is not None:
        update["through"] = table.through.model_copy(update={"table": fold(table.through.table)})
    return table.model_copy(update=update)


def _table_names(table: RootSpec | JoinSpec) -> Iterator[str]:
    """Yield the names of a table, of its link table and of all that is joined to it."""
    if isinstance(table, JoinSpec) and table.through is not None:
        yield table.through.table
    yield table.table
    for join in table.joins.values():
        yield from _table_names(join)


def read_spec(raw: Any, folder: Path) -> DocumentSpec:
    """Return the spec that the content of a YAML file in this folder is. Raises pydantic's ValidationError."""
    return DocumentSpec.model_validate(raw, context={"folder": folder})


def load_spec(path: Path) -> DocumentSpec:
    """Read and check a document spec."""
    return load_yaml(path, DocumentSpec, context={"folder": path.parent})
