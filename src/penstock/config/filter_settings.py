"""The settings for what an instance captures of its source's log: tables, columns, kinds of events."""

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
# Statements about accounts hold names, privileges and hashes of passwords: they are delivered only on request.
DEFAULT_KINDS: tuple[FilterKind, ...] = tuple(kind for kind in KINDS if kind != "dcl")


def _wrap_text(value: object) -> object:
    """Return a text as a list of one; a list stays as it is."""
    return [value] if isinstance(value, str) else value


Texts = Annotated[tuple[str, ...], BeforeValidator(_wrap_text), TEXTS_SCHEMA]


class ColumnSettings(Section):
    r"""The columns of a table that are captured. Key columns always are.

    settings = ColumnSettings(table=r"shop\.customer", drop=("password",))
    """

    table: str = Field(
        min_length=1,
        description="regular expression for database.table: the tables whose columns are chosen by keep or drop",
    )
    keep: Texts = Field(default=(), description="capture only these columns, and those of the key")
    drop: Texts = Field(
        default=(), description="capture all columns except these; those of the key are always captured"
    )

    @model_validator(mode="after")
    def _check_keep_or_drop(self) -> Self:
        """Raise ValueError unless exactly one of keep and drop is given."""
        if bool(self.keep) == bool(self.drop):
            raise ValueError(f"columns of {self.table}: set either keep or drop")
        return self


class FilterSettings(Section):
    r"""What is captured. Rules are regular expressions that must match the whole of `database.table`, ignoring case; a
    text may be a comma-separated list.

        settings = FilterSettings(allow=(r"shop\..*",), deny=(r"shop\.tmp_.*",))
    """

    allow: Texts = Field(
        default=(),
        description="regular expressions for database.table; only matching tables are captured; default: all",
    )
    deny: Texts = Field(
        default=(r"mysql\.slave_.*",),
        description="regular expressions for tables that are not captured, even if `allow` matches",
    )
    columns: tuple[ColumnSettings, ...] = Field(
        default=(),
        description="which columns are captured, by table; the first entry that matches a table is used, and a table"
        " that none matches is captured with all columns",
    )
    kinds: tuple[FilterKind, ...] = Field(
        default=DEFAULT_KINDS,
        min_length=1,
        description="kinds of events that are delivered; a kind that is not listed is dropped. insert, update,"
        " delete: row changes; ddl: DDL statements; query: other SQL statements, as text; transaction: begins and"
        " commits; dcl: statements about users, roles, grants and passwords, delivered only when listed here, with"
        " passwords and their hashes masked",
    )

    @field_validator("columns", mode="before")
    @classmethod
    def _parse_canal_form(cls, value: object) -> object:
        """Convert canal's form, `{keep: schema.table:a/b, drop: …}`, which is its filter.field and
        filter.black.field."""
        if not isinstance(value, dict):
            return value
        lists = cast("dict[str, object]", value)
        if unknown := sorted(lists.keys() - {"keep", "drop"}):
            raise ValueError(f"there is keep and drop, not {', '.join(unknown)}; or write a list with a `table` each")
        return parse_canal_columns(str(lists.get("keep", "")), str(lists.get("drop", "")))

    @field_validator("allow", "deny")
    @classmethod
    def _check_rules(cls, texts: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        """Raise ValueError for a rule that is not a regular expression."""
        _check_patterns(texts, info.field_name or "")
        return texts

    @field_validator("columns")
    @classmethod
    def _check_column_rules(cls, columns: tuple[ColumnSettings, ...]) -> tuple[ColumnSettings, ...]:
        """Raise ValueError for a column rule whose table is not a regular expression."""
        _check_patterns([rule.table for rule in columns], "columns")
        return columns


def _check_patterns(rules: Iterable[str], name: str) -> None:
    """Raise ValueError for a rule that is not a regular expression."""
    try:
        parse_rules(rules, name)
    except ConfigurationError as error:
        raise ValueError(str(error)) from None


def parse_canal_columns(keep: str = "", drop: str = "") -> tuple[ColumnSettings, ...]:
    """Parse canal's column lists, `schema.table:column/column,…`. The names are plain names, not expressions. Raises
    ValueError."""
    rules = [*_parse_column_list(keep, "keep"), *_parse_column_list(drop, "drop")]
    tables = [rule.table for rule in rules]
    if twice := sorted({table for table in tables if tables.count(table) > 1}):
        raise ValueError(f"there are two lists of columns for {', '.join(twice)}: set either keep or drop")
    return tuple(rules)


def _parse_column_list(text: str, action: Literal["keep", "drop"]) -> Iterable[ColumnSettings]:
    """Yield a column rule for each table of one of canal's column lists."""
    for part in split_list(text):
        table, colon, names = part.partition(":")
        columns = tuple(name.strip() for name in names.split("/") if name.strip())
        if not colon or not columns:
            raise ValueError(f"{part!r} is no list of columns: write it as database.table:column/column")
        try:
            pattern = re.escape(str(TableName.parse(table)))
        except ConfigurationError as error:
            raise ValueError(str(error)) from None
        yield ColumnSettings(
            table=pattern, keep=columns if action == "keep" else (), drop=columns if action == "drop" else ()
        )
