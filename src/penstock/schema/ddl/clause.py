"""What an ALTER TABLE says: its clauses."""

from dataclasses import dataclass

from penstock.model import TableName
from penstock.schema.ddl.column import CharsetSpec, ColumnSpec
from penstock.schema.ddl.create import Period
from penstock.schema.ddl.key import KeySpec
from penstock.schema.ddl.option import TableOptions


@dataclass(frozen=True, slots=True)
class ColumnPosition:
    """`after` is empty for FIRST."""

    after: str


@dataclass(frozen=True, slots=True)
class AddColumn:
    column: ColumnSpec
    position: ColumnPosition | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """CHANGE and MODIFY."""

    old: str
    column: ColumnSpec
    position: ColumnPosition | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    old: str
    new: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ShowColumn:
    """SET VISIBLE, SET INVISIBLE."""

    name: str
    is_visible: bool


@dataclass(frozen=True, slots=True)
class AddKey:
    key: KeySpec
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class DropKey:
    """`is_constraint`: what has this name may be no key at all."""

    name: str
    if_exists: bool = False
    is_constraint: bool = False


@dataclass(frozen=True, slots=True)
class RenameKey:
    old: str
    new: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ConvertCharset:
    charset: CharsetSpec


@dataclass(frozen=True, slots=True)
class SetOptions:
    options: TableOptions


@dataclass(frozen=True, slots=True)
class Remake:
    """A clause that changes nothing in the model, but makes the server rebuild the table's definition."""


@dataclass(frozen=True, slots=True)
class RenameTo:
    name: TableName


@dataclass(frozen=True, slots=True)
class AddPeriod:
    period: Period


@dataclass(frozen=True, slots=True)
class DropPeriod:
    name: str


@dataclass(frozen=True, slots=True)
class SetVersioning:
    is_on: bool


@dataclass(frozen=True, slots=True)
class PartitionToTable:
    """MariaDB's CONVERT PARTITION: a new table of the same shape."""

    name: TableName


@dataclass(frozen=True, slots=True)
class TableToPartition:
    """MariaDB's CONVERT TABLE: that table is gone."""

    name: TableName


Clause = (
    AddColumn | ChangeColumn | RenameColumn | DropColumn | ShowColumn | AddKey | DropKey | RenameKey | ConvertCharset
    | SetOptions | Remake | RenameTo | AddPeriod | DropPeriod | SetVersioning | PartitionToTable | TableToPartition
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AlterTable:
    name: TableName
    clauses: tuple[Clause, ...]
    if_exists: bool = False
