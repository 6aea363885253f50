"""Loads a document spec so that each mistake in it names the file, the line, and what may have been meant.

Where a spec does not fit the tables, the mistake is located by leaving parts out: the smallest part without which the
spec no longer has this mistake is the one that has it.
"""

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from penstock.config.yaml_file import read_yaml
from penstock.document.live_graph import load_graph
from penstock.document.spec import (
    DocumentFieldSpec,
    DocumentSpec,
    JoinSpec,
    LinkSpec,
    RootSpec,
    TransformSpec,
    read_spec,
)
from penstock.document.spec_lines import KeyPath, SpecLines
from penstock.document.sql_columns import find_columns
from penstock.document.sql_text import quote_table
from penstock.document.suggestion import suggest
from penstock.document.sync import LoadedGraph
from penstock.errors import ConfigurationError, SchemaError
from penstock.model import TableName, TableSchema
from penstock.schema.live import read_live_schema

# Codes of errors by which a server says that an expression is wrong: names, syntax, arguments, constants.
_WRONG_SQL = {1052, 1054, 1064, 1111, 1128, 1140, 1149, 1241, 1267, 1271, 1292, 1305, 1318, 1525, 1582, 1583, 3185}
_NO_COLUMN = re.compile(r"has no column (?P<name>.+?); it has (?P<known>.*)$")
_UNKNOWN_COLUMN = re.compile(r"Unknown column '(?:[^'.]*\.)*(?P<name>[^']+)'")
LoadSpec = Callable[[DocumentSpec], LoadedGraph]
_TABLE_NAMES = (
    "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema = %s OR table_name = %s"
)


def load_checked(cursor: Any, path: Path) -> LoadedGraph:
    """Return the graph of the spec in a file, after all of it was checked against the live tables.

    Raises ConfigurationError or SchemaError, as in "product.yml, line 12: table shop.product has no column nmae: did
    you mean name?".
    """
    raw, spec = _read_spec(path)
    locator = _MistakeLocator(path, raw)
    schemas = _read_schemas(cursor, spec, locator)
    for key_path, table, sql, is_condition in _expressions(spec.root, ("root",)):
        _check_expression(cursor, schemas[table], sql, locator, key_path, is_condition=is_condition)
    return locator.load(lambda part: load_graph(cursor, part), spec)


def load_located_spec(path: Path) -> DocumentSpec:
    """Read a document spec as `load_spec` does; a mistake names its line."""
    return _read_spec(path)[1]


def _read_spec(path: Path) -> tuple[dict[str, Any], DocumentSpec]:
    """Return the content of a file, and the spec that it is."""
    raw = read_yaml(path)
    try:
        return raw, read_spec(raw, path.parent)
    except ValidationError as error:
        raise ConfigurationError(_describe_validation(path, error)) from None


def _describe_validation(path: Path, error: ValidationError) -> str:
    """Return the first mistake of a file with its line, without the wrong value."""
    first = error.errors(include_input=False, include_url=False)[0]
    loc, text = first["loc"], first["msg"].removeprefix("Value error, ")
    line, known = SpecLines.read(path).follow(loc)
    key = ".".join(map(str, known)) or "the spec"
    if first["type"] == "extra_forbidden":
        names = ", ".join(_model_at(loc[:-1]).model_fields)
        text = "there is no such key" + (suggest(str(loc[-1]), names.split(", ")) or f"; there are {names}")
    elif first["type"] == "missing":
        text = f"the key `{loc[-1]}` is missing"
    others = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{path}, line {line}: {key}: {text}{others}"


def _model_at(path: Sequence[str | int]) -> type[BaseModel]:
    """Return the model of the part of a spec with this path."""
    if path == ("transform",):
        return TransformSpec
    if path[-1:] == ("through",):
        return LinkSpec
    match path[-2:-1]:
        case ("fields",):
            return DocumentFieldSpec
        case ("joins",):
            return JoinSpec
        case _:
            return RootSpec if path else DocumentSpec


class _MistakeLocator:
    """Says where in a file a mistake is."""

    def __init__(self, path: Path, raw: dict[str, Any]) -> None:
        self._path, self._raw = path, raw
        self._lines = SpecLines.read(path)

    def error(self, text: str, key_path: KeyPath, name: str = "") -> SchemaError:
        """Return the error for a mistake in the part with this path; `name` is what is wrong in it."""
        return SchemaError(f"{self._path}, line {self._lines.find_line(key_path, name)}: {text}")

    def load(self, load: LoadSpec, spec: DocumentSpec) -> LoadedGraph:
        """Return the graph of a spec; what is wrong with it is raised with its line."""
        try:
            return load(spec)
        except SchemaError as error:
            message = str(error)
        key_path = self._find_place(load, message)
        text = message.removeprefix(f"document '{spec.index}': ")
        match = _NO_COLUMN.search(text)
        if match is None:
            raise self.error(text, key_path)
        close = suggest(match["name"], match["known"].split(", "))
        text = f"{text[: match.start()]}has no column {match['name']}{close}{'' if close else '; it has '}"
        raise self.error(text if close else text + match["known"], key_path, match["name"])

    def _find_place(self, load: LoadSpec, message: str) -> KeyPath:
        """Return the path of the smallest part without which a spec does not have this mistake."""
        key_path: KeyPath = ()
        while True:
            # The root cannot be left out: it is looked into when nothing beside it has the mistake.
            steps = sorted(_steps(_part_at(self._raw, key_path)), key=lambda step: step == "root")
            step = next((step for step in steps if self._causes((*key_path, step), load, message)), None)
            if step is None:
                return key_path or ("root",)
            key_path = (*key_path, step)

    def _causes(self, key_path: KeyPath, load: LoadSpec, message: str) -> bool:
        """Return whether a mistake is gone when a part is left out."""
        raw = copy.deepcopy(self._raw)
        del _part_at(raw, key_path[:-1])[key_path[-1]]
        try:
            load(read_spec(raw, self._path.parent))
        except ValidationError:
            return key_path[-1] in ("root", "joins")  # nothing can be said without them: look into them
        except SchemaError as error:
            return str(error) != message
        return True


def _part_at(raw: Any, path: KeyPath) -> Any:
    """Return the part of a spec with this path."""
    for step in path:
        raw = raw[step]
    return raw


def _steps(part: Any) -> Sequence[str | int]:
    """Return the keys of a mapping, or the numbers of a list."""
    if isinstance(part, Mapping):
        return list(cast("Mapping[str, Any]", part))
    return range(len(cast("list[Any]", part))) if isinstance(part, list) else ()


def _tables(table: RootSpec | JoinSpec, key_path: KeyPath) -> Iterator[tuple[KeyPath, TableName]]:
    """Yield all tables of a spec with the paths of their names."""
    yield (*key_path, "table"), TableName.parse(table.table)
    if isinstance(table, JoinSpec) and table.through is not None:
        yield (*key_path, "through", "table"), TableName.parse(table.through.table)
    for name, join in table.joins.items():
        yield from _tables(join, (*key_path, "joins", name))


def _expressions(table: RootSpec | JoinSpec, key_path: KeyPath) -> Iterator[tuple[KeyPath, TableName, str, bool]]:
    """Yield all SQL expressions of a spec with their paths and tables, and whether they are conditions."""
    name = TableName.parse(table.table)
    for field, part in table.fields.items():
        if part.sql is not None:
            yield (*key_path, "fields", field, "sql"), name, part.sql, False
    if isinstance(table, RootSpec) and isinstance(table.where, str):
        yield (*key_path, "where"), name, table.where, True
    if isinstance(table, JoinSpec) and table.filter is not None:
        yield (*key_path, "filter"), name, table.filter, True
    for field, join in table.joins.items():
        yield from _expressions(join, (*key_path, "joins", field))


def _read_schemas(cursor: Any, spec: DocumentSpec, locator: _MistakeLocator) -> dict[TableName, TableSchema]:
    """Return the live tables of a spec."""
    schemas: dict[TableName, TableSchema] = {}
    for key_path, table in _tables(spec.root, ("root",)):
        if table in schemas:
            continue
        try:
            schemas[table] = read_live_schema(cursor, table)
        except SchemaError as error:
            cursor.execute(_TABLE_NAMES, (table.schema, table.table))
            known = [f"{schema}.{name}" for schema, name in cursor.fetchall()]
            raise locator.error(f"{error}{suggest(str(table), known)}", key_path) from None
    return schemas


def _check_expression(
    cursor: Any, table: TableSchema, sql: str, locator: _MistakeLocator, key_path: KeyPath, *, is_condition: bool
) -> None:
    """Let the server look at an expression, without reading rows."""
    try:
        find_columns(sql, table)
    except ValueError as error:
        raise locator.error(str(error), key_path) from None
    chosen, where = ("1", f" WHERE ({sql})") if is_condition else (f"({sql})", "")
    try:
        cursor.execute(f"SELECT {chosen} FROM {quote_table(table.name)}{where} LIMIT 0")
        cursor.fetchall()
    except Exception as error:
        code = error.args[0] if error.args else None
        if code not in _WRONG_SQL:
            raise
        reason = str(error.args[1])
        match = _UNKNOWN_COLUMN.search(reason)
        close = suggest(match["name"], (column.name for column in table.declared_columns)) if match else ""
        raise locator.error(f"the server refuses the SQL {sql!r} for {table.name}: {reason}{close}", key_path) from None
