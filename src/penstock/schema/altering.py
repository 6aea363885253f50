"""Applies ALTER TABLE to the model.

As in the servers, the clauses are not applied one after the other. Columns first: the old ones, without those dropped,
changed ones where they were; then, in the order of the text, those that are new or are moved. FIRST and AFTER use the
new names. Then indexes: the old ones by the old names of their columns, then the new ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.errors import SchemaError
from penstock.schema.collation import choose_collation
from penstock.schema.creating import HIDDEN, apply_key_effects
from penstock.schema.ddl.clause import (
    AddColumn,
    AddKey,
    AddPeriod,
    ChangeColumn,
    Clause,
    ColumnPosition,
    ConvertCharset,
    DropColumn,
    DropKey,
    DropPeriod,
    ExchangePartition,
    PartitionToTable,
    RenameColumn,
    RenameKey,
    RenameTo,
    SetColumnVisibility,
    SetOptions,
    SetVersioning,
    TableToPartition,
)
from penstock.schema.ddl.column import NO_CHARSET, ColumnSpec
from penstock.schema.ddl.key import KeyKind
from penstock.schema.dialect import SqlDialect
from penstock.schema.indexing import build_indexes
from penstock.schema.key_length import POINT_BYTES, carried_prefix, key_limit, label_prefix
from penstock.schema.resolve import convert_charset, redefine_in_charset, resolve_column
from penstock.schema.shape import ColumnDefinition, IndexDefinition, IndexPart, TableDefinition, blob_bytes, fold

_PARTIAL = {"char", "varchar", "binary", "varbinary", "tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob",
            "mediumblob", "longblob"}  # fmt: skip


@dataclass(slots=True, eq=False)
class _Slot:
    """A column of the altered table, and the old column that it comes from."""

    field: ColumnDefinition
    old: ColumnDefinition | None = None
    spec: ColumnSpec | None = None


def apply_alter(
    table: TableDefinition, clauses: Sequence[Clause], dialect: SqlDialect, database_collation: str
) -> TableDefinition:
    """Return the table after all clauses of an ALTER TABLE."""
    clauses = [clause for clause in clauses if _is_effective(clause, table)]
    if not clauses:
        return table
    table = _apply_options(table, clauses, dialect, database_collation)
    slots = _alter_columns(table, clauses, dialect)
    last = next((clause for clause in reversed(clauses) if isinstance(clause, ConvertCharset)), None)
    if last:
        collation = choose_collation(last.charset, table.collation, dialect, database_collation)
        for slot in slots:
            slot.field = _convert_column(slot, collation, dialect)
    fields = tuple(slot.field for slot in slots)
    kept, keys = _alter_indexes(table, slots, clauses), [each.key for each in clauses if isinstance(each, AddKey)]
    row_end = next((field.name for field in fields if field.is_row_end), "") if table.is_versioned else ""
    limit = key_limit(table.engine, table.row_format)
    indexes = build_indexes(kept, keys, fields, table.periods, row_end, limit, dialect.server)
    return apply_key_effects(replace(table, fields=fields, indexes=indexes), dialect)


def _convert_column(slot: _Slot, collation: str, dialect: SqlDialect) -> ColumnDefinition:
    """Return a column after CONVERT TO CHARACTER SET, whether the same statement defines it or not."""
    if slot.spec is None:
        return convert_charset(slot.field, collation, dialect)
    return redefine_in_charset(slot.spec, slot.old, collation, dialect)


def _is_effective(clause: Clause, table: TableDefinition) -> bool:
    """Return whether a clause changes the table: renames of the table do not, nor what IF EXISTS and IF NOT EXISTS
    cancel."""
    match clause:
        case RenameTo() | PartitionToTable() | TableToPartition() | ExchangePartition():
            return False
        case AddColumn(column, _, True):
            return table.find_column(column.name) is None
        case ChangeColumn(old, _, _, True) | RenameColumn(old, _, True) | DropColumn(old, True):
            return table.find_column(old) is not None
        case AddKey(key, False) if key.if_not_exists:
            name = "PRIMARY" if key.kind is KeyKind.PRIMARY else key.name or key.parts[0].column
            return table.find_index(name) is None
        case DropKey(name, True) | RenameKey(name, _, True):
            return table.find_index(name) is not None
        case _:
            return True


def _apply_options(
    table: TableDefinition, clauses: Sequence[Clause], dialect: SqlDialect, above: str
) -> TableDefinition:
    """Return the table with the charset, engine and row format that the clauses set."""
    # MariaDB gives the columns one charset and the table the other when a statement has both.
    is_set = any(isinstance(clause, SetOptions) and clause.options.charset != NO_CHARSET for clause in clauses)
    for clause in clauses:
        match clause:
            case SetOptions(options):
                table = replace(
                    table,
                    collation=choose_collation(options.charset, table.collation, dialect, above),
                    engine=options.engine or table.engine,
                    row_format=table.row_format if options.row_format is None else options.row_format,
                )
            case ConvertCharset(charset) if not (is_set and dialect.server.is_mariadb):
                table = replace(table, collation=choose_collation(charset, table.collation, dialect, above))
            case AddPeriod(period):
                table = replace(table, periods=(*table.periods, (period.name, period.start, period.end)))
            case DropPeriod(name):
                table = replace(table, periods=tuple(each for each in table.periods if fold(each[0]) != fold(name)))
            case SetVersioning(is_on):
                table = replace(table, is_versioned=is_on)
            case _:
                pass
    return table


def _alter_columns(table: TableDefinition, clauses: Sequence[Clause], dialect: SqlDialect) -> list[_Slot]:
    """Return the columns of a table after an ALTER TABLE: without those that are dropped, with those that are added,
    and with their definitions, names and visibility (VISIBLE or INVISIBLE) as the clauses set them."""
    changes = {fold(clause.old): clause for clause in clauses if isinstance(clause, ChangeColumn | RenameColumn)}
    dropped = {fold(clause.name) for clause in clauses if isinstance(clause, DropColumn)}
    visibility = {fold(clause.name): clause.is_visible for clause in clauses if isinstance(clause, SetColumnVisibility)}
    for name in (*changes, *dropped, *visibility):
        if table.find_column(name) is None:
            raise SchemaError(f"there is no column {name}")
    slots: list[_Slot] = []
    for field in table.fields:
        if fold(field.name) in dropped or field.is_hidden:
            continue
        change = changes.get(fold(field.name))
        if isinstance(change, ChangeColumn):
            slots.append(_Slot(resolve_column(change.column, table.collation, dialect), field, change.column))
            continue
        visible = visibility.get(fold(field.name), field.is_visible)
        name = change.new if change else field.name
        slots.append(_Slot(replace(field, name=name, is_visible=visible), field))
    _insert_columns(slots, table, clauses, dialect)
    names = [fold(slot.field.name) for slot in slots]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SchemaError(f"there is a column {twice} already")
    if table.is_versioned and not any(slot.field.is_row_end for slot in slots):
        slots += [_Slot(field, table.find_column(field.name)) for field in HIDDEN]
    return slots


def _insert_columns(slots: list[_Slot], table: TableDefinition, clauses: Sequence[Clause], dialect: SqlDialect) -> None:
    """Insert the new columns and move those that are given another position."""
    for clause in clauses:
        match clause:
            case AddColumn(column, _, True) if any(fold(slot.field.name) == fold(column.name) for slot in slots):
                pass
            case AddColumn(column, position, _):
                _insert_column(slots, _Slot(resolve_column(column, table.collation, dialect), spec=column), position)
            case ChangeColumn(old, _, ColumnPosition() as position, _):
                moved = next(slot for slot in slots if slot.old and fold(slot.old.name) == fold(old))
                slots.remove(moved)
                _insert_column(slots, moved, position)
            case _:
                pass


def _insert_column(slots: list[_Slot], slot: _Slot, position: ColumnPosition | None) -> None:
    """Insert a column at the position that the statement gives, or at the end."""
    if position is None:
        slots.append(slot)
    elif not position.after:
        slots.insert(0, slot)
    else:
        wanted = fold(position.after)
        at = next((i for i, each in enumerate(slots) if fold(each.field.name) == wanted), None)
        if at is None:
            raise SchemaError(f"there is no column {position.after} to come after")
        slots.insert(at + 1, slot)


def _alter_indexes(table: TableDefinition, slots: Sequence[_Slot], clauses: Sequence[Clause]) -> list[IndexDefinition]:
    """Return the indexes of the old table that stay, with the new names of their columns."""
    dropped = _find_dropped_keys(table, clauses)
    renamed = {fold(clause.old): clause.new for clause in clauses if isinstance(clause, RenameKey)}
    # The first of the new columns that comes from the old one, or is new and has its name.
    by_old = {fold(slot.old.name if slot.old else slot.field.name): slot for slot in reversed(slots)}
    row_ends = {slot.field.name for slot in slots if slot.field.is_row_end}
    kept: list[IndexDefinition] = []
    for index in sorted(table.indexes, key=lambda index: _rank(index, table)):
        if fold(index.name) in dropped:
            continue
        parts: list[IndexPart] = []
        for part in index.parts:
            slot, before = by_old.get(fold(part.column)), table.find_column(part.column)
            if slot and before:
                parts.append(_alter_index_part(part, slot, before, index.kind, table.is_mariadb))
            elif not part.column:
                parts.append(part)
        if any(not part.column or part.column not in row_ends for part in parts):
            name = renamed.get(fold(index.name), index.name)
            kept.append(replace(index, name=name, parts=tuple(parts), is_hash=False))
    return kept


def _rank(index: IndexDefinition, table: TableDefinition) -> tuple[bool, ...]:
    """Return the key by which servers order the indexes of an existing table; only their hidden columns show it."""
    if index.kind is KeyKind.PRIMARY:
        return ()
    fields = [table.find_column(part.column) for part in index.parts]
    has_null = any(field is None or field.is_nullable for field in fields)
    return index.kind is not KeyKind.UNIQUE, has_null, any(part.prefix for part in index.parts)


def _find_dropped_keys(table: TableDefinition, clauses: Sequence[Clause]) -> set[str]:
    """Return the folded names of the keys that the clauses drop."""
    dropped: set[str] = set()
    for clause in clauses:
        match clause:
            case DropKey(name, _, is_constraint):
                index = table.find_index(name)
                if index is None and not is_constraint:
                    raise SchemaError(f"there is no key {name}")
                if index and (not is_constraint or index.kind in (KeyKind.PRIMARY, KeyKind.UNIQUE)):
                    dropped.add(fold(name))
            case AddKey(key, True):
                dropped.add(fold(key.name))
            case _:
                pass
    return dropped


def _alter_index_part(
    part: IndexPart, slot: _Slot, before: ColumnDefinition, kind: KeyKind, is_mariadb: bool
) -> IndexPart:
    """Return a part of an index after its column changed; a prefix stays as long as the column is longer."""
    field, prefix = slot.field, part.prefix
    if slot.old is None:
        prefix = carried_prefix(part, before)
    elif before.type.labels and slot.spec and not is_mariadb:
        prefix = label_prefix(before)
    if field.type.kind == "point" and kind is not KeyKind.SPATIAL:
        return IndexPart(field.name, POINT_BYTES)
    is_whole = not prefix or kind in (KeyKind.SPATIAL, KeyKind.FULLTEXT)
    if is_whole or not (field.is_geometry or field.type.kind in _PARTIAL):
        return IndexPart(field.name)
    if field.is_geometry:
        return IndexPart(field.name, prefix)
    is_longer = 256 ** blob_bytes(field.type.kind) > prefix if field.is_blob else field.type.length > prefix
    return IndexPart(field.name, prefix if is_longer else 0)
