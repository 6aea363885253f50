"""Keys as written → indexes as the server stores them: names it invents, indexes it adds and leaves out.

Servers name a key after its first column, with _2, _3 … where that is taken. A foreign key adds an index unless one
begins with the same columns; that index is dropped as soon as there is such a one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from penstock.errors import SchemaError
from penstock.schema.ddl.key import KeyKind, KeySpec, PartSpec
from penstock.schema.dialect import ServerProfile
from penstock.schema.key_length import POINT_BYTES, shorten_parts
from penstock.schema.shape import ColumnDefinition, IndexDefinition, IndexPart, fold

_FUNCTIONAL = "functional_index"
_STRINGS = {"char", "varchar", "binary", "varbinary"}


Periods = Sequence[tuple[str, str, str]]


def build_indexes(
    indexes: Sequence[IndexDefinition],
    keys: Iterable[KeySpec],
    fields: Sequence[ColumnDefinition],
    periods: Periods,
    row_end: str,
    limit: int,
    server: ServerProfile,
) -> tuple[IndexDefinition, ...]:
    """Return the indexes of a table that had `indexes` and is given `keys`. Each unique one ends with `row_end`; in
    one, a column has at most `limit` bytes."""
    candidates = list(indexes)
    for key in keys:
        parts = tuple(_parts(key, fields, periods))
        candidates.append(IndexDefinition(key.name, key.kind, parts, key.is_implied, key.is_hash))
    named = _name_indexes(_drop_redundant(candidates))
    if not server.is_mariadb and server.version >= 80000:
        named = (_as_spatial(index, fields) for index in named)
    return tuple(with_row_end(shorten_parts(index, fields, limit), row_end) for index in named)


def _as_spatial(index: IndexDefinition, fields: Sequence[ColumnDefinition]) -> IndexDefinition:
    """Return an index of a geometry as a spatial one: from 8.0 on, MySQL has no other."""
    names = {fold(part.column) for part in index.parts}
    if index.kind is not KeyKind.PLAIN or not any(field.is_geometry and fold(field.name) in names for field in fields):
        return index
    return replace(index, kind=KeyKind.SPATIAL, parts=tuple(IndexPart(part.column) for part in index.parts))


def with_row_end(index: IndexDefinition, row_end: str) -> IndexDefinition:
    """Return a key with the end of the row's period: with system versioning a key has many rows, of which one is
    current."""
    is_unique = index.kind in (KeyKind.PRIMARY, KeyKind.UNIQUE)
    if not row_end or not is_unique or any(part.column == row_end for part in index.parts):
        return index
    return replace(index, parts=(*index.parts, IndexPart(row_end)))


def _parts(key: KeySpec, fields: Sequence[ColumnDefinition], periods: Periods) -> Iterable[IndexPart]:
    by_name = {fold(field.name): field for field in fields}

    def field_of(column: str) -> ColumnDefinition:
        field = by_name.get(fold(column))
        if field is None:
            raise SchemaError(f"there is no column {column} for a key")
        return field

    for spec in key.parts:
        if spec.is_period:
            period = next((each for each in periods if fold(each[0]) == fold(spec.column)), None)
            if period is None:
                raise SchemaError(f"there is no period {spec.column} for a key")
            _, start, end = period
            yield from (IndexPart(field_of(end).name), IndexPart(field_of(start).name))
        elif spec.column:
            field = field_of(spec.column)
            yield IndexPart(field.name, _prefix(spec, field, key.kind))
        else:
            yield IndexPart("")


def _prefix(spec: PartSpec, field: ColumnDefinition, kind: KeyKind) -> int:
    """Return the prefix length of a key part in characters, or in bytes for binary columns; 0 if the whole column is
    indexed, as it is when the prefix written is the column's full length. For a POINT it is POINT_BYTES, as servers
    show it."""
    if kind in (KeyKind.FULLTEXT, KeyKind.SPATIAL):
        return 0
    if field.type.kind == "point":
        return POINT_BYTES
    is_part = spec.prefix < field.type.length if field.type.kind in _STRINGS else field.is_blob or field.is_geometry
    return spec.prefix if is_part else 0


def _drop_redundant(indexes: list[IndexDefinition]) -> list[IndexDefinition]:
    """Return the indexes without implied ones that another serves as well. Of two implied ones for the same columns the
    later stays."""
    kept: list[IndexDefinition] = []
    for index in indexes:
        other = next((other for other in kept if _serves(index, other) or _serves(other, index)), None)
        if other is None:
            kept.append(index)
        elif other.is_implied and not (index.is_implied and len(index.parts) < len(other.parts)):
            kept.remove(other)
            kept.append(index)
    return kept


def _serves(index: IndexDefinition, implied: IndexDefinition) -> bool:
    if not implied.is_implied or index.kind in (KeyKind.FULLTEXT, KeyKind.SPATIAL, KeyKind.VECTOR):
        return False
    columns = [fold(part.column) for part in implied.parts]
    return columns == [fold(part.column) for part in index.parts][: len(columns)]


def _name_indexes(indexes: list[IndexDefinition]) -> Iterable[IndexDefinition]:
    taken: set[str] = set()
    for index in indexes:
        name = "PRIMARY" if index.kind is KeyKind.PRIMARY else index.name or _free_name(index, taken)
        taken.add(fold(name))
        yield replace(index, name=name)


def _free_name(index: IndexDefinition, taken: set[str]) -> str:
    first = index.parts[0].column or _FUNCTIONAL
    if fold(first) not in taken and fold(first) != "primary":
        return first
    return next(name for number in range(2, 1000) if fold(name := f"{first}_{number}") not in taken)
