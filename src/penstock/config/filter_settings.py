"""What of a source's log an instance captures: tables, columns, kinds."""

import re
from collections.abc import Iterable
from typing import Annotated, Literal, Self, cast, get_args

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from penstock.config.section import TEXTS_SCHEMA, Section
from penstock.errors import ConfigurationError
from penstock.model import TableName
from penstock.model.table_rules import parse_rules, split_list

FilterKind = Literal["insert", "update", "delete", "ddl", "dcl", "query", "transaction"]
KINDS: tuple[FilterKind, ...] = get_args(FilterKind)
# Statements about accounts hold names, privileges and hashes of passwords: only who asks for them gets them.
DEFAULT_KINDS: tuple[FilterKind, ...] = tuple(kind for kind in KINDS if kind != "dcl")


def _listed(value: object) -> object:
    """A text is a list of one; canal's forms are lists already."""
    return [value] if isinstance(value, str) else value


Texts = Annotated[tuple[str, ...], BeforeValidator(_listed), TEXTS_SCHEMA]


class ColumnSettings(Section):
    """Which columns of a table are shown. Those of its key always are."""

    table: str = Field(min_length=1, description="a regular expression for `database.table`, as in `allow`")
    keep: Texts = Field(default=(), description="capture only these columns")
    drop: Texts = Field(default=(), description="capture all columns except these")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if bool(self.keep) == bool(self.drop):
            raise ValueError(f"columns of {self.table}: say either keep or drop")
        return self


class FilterSettings(Section):
    """Rules are regular expressions for `database.table`, the whole of it, in any case; a text is a comma list."""

    allow: Texts = Field(
        default=(),
        description="regular expressions for database.table; only matching tables are captured; default: all",
    )
    deny: Texts = Field(
        default=(r"mysql\.slave_.*",),
        description="regular expressions for tables that are not captured, even if `allow` matches",
    )
    columns: tuple[ColumnSettings, ...] = Field(
        default=(), description="which columns are captured, by table; the first entry that matches a table is used"
    )
    kinds: tuple[FilterKind, ...] = Field(
        default=DEFAULT_KINDS,
        min_length=1,
        description="kinds of events to deliver. query: other statements, as text; transaction: begins and commits;"
        " dcl: statements about users, roles, grants and passwords, delivered only when listed here, with passwords and"
        " their hashes masked",
    )

    @field_validator("columns", mode="before")
    @classmethod
    def _of_canal(cls, value: object) -> object:
        """`{keep: schema.table:a/b, drop: …}` is canal's filter.field and filter.black.field."""
        if not isinstance(value, dict):
            return value
        given = cast("dict[str, object]", value)
        if unknown := sorted(given.keys() - {"keep", "drop"}):
            raise ValueError(f"there is keep and drop, not {', '.join(unknown)}; or write a list with a `table` each")
        return columns_of_canal(str(given.get("keep", "")), str(given.get("drop", "")))

    @field_validator("allow", "deny")
    @classmethod
    def _are_rules(cls, texts: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        _check(texts, info.field_name or "")
        return texts

    @field_validator("columns")
    @classmethod
    def _are_for_rules(cls, columns: tuple[ColumnSettings, ...]) -> tuple[ColumnSettings, ...]:
        _check([one.table for one in columns], "columns")
        return columns


def _check(rules: Iterable[str], name: str) -> None:
    try:
        parse_rules(rules, name)
    except ConfigurationError as error:
        raise ValueError(str(error)) from None


def columns_of_canal(keep: str = "", drop: str = "") -> tuple[ColumnSettings, ...]:
    """`schema.table:column/column,…`; the names are names, not expressions."""
    found = [*_columns_of(keep, "keep"), *_columns_of(drop, "drop")]
    tables = [one.table for one in found]
    if twice := sorted({table for table in tables if tables.count(table) > 1}):
        raise ValueError(f"there are two lists of columns for {', '.join(twice)}: say either keep or drop")
    return tuple(found)


def _columns_of(text: str, what: Literal["keep", "drop"]) -> Iterable[ColumnSettings]:
    for part in split_list(text):
        table, colon, names = part.partition(":")
        columns = tuple(name.strip() for name in names.split("/") if name.strip())
        if not colon or not columns:
            raise ValueError(f"{part!r} is no list of columns: write it as database.table:column/column")
        try:
            rule = re.escape(str(TableName.parse(table)))
        except ConfigurationError as error:
            raise ValueError(str(error)) from None
        yield ColumnSettings(table=rule, keep=columns if what == "keep" else (), drop=columns if what == "drop" else ())
