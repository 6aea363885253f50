"""What an ALTER TABLE says: its clauses."""

from dataclasses import dataclass

from penstock.model import TableName
from penstock.schema.ddl.column import CharsetSpec, ColumnSpec
from penstock.schema.ddl.create import Period
from penstock.schema.ddl.key import KeySpec
from penstock.schema.ddl.option import TableOptions


@dataclass(frozen=True, slots=True)
class ColumnPosition:
    """The position that ADD or CHANGE gives a column: after another column, or FIRST where `after` is empty."""

    after: str


@dataclass(frozen=True, slots=True)
class AddColumn:
    """The clause ADD COLUMN."""

    column: ColumnSpec
    position: ColumnPosition | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """The clauses CHANGE and MODIFY, which replace a column's definition."""

    old: str
    column: ColumnSpec
    position: ColumnPosition | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """The clause RENAME COLUMN."""

    old: str
    new: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    """The clause DROP COLUMN."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetColumnVisibility:
    """The clause ALTER COLUMN … SET VISIBLE or SET INVISIBLE."""

    name: str
    is_visible: bool


@dataclass(frozen=True, slots=True)
class AddKey:
    """The clause ADD KEY, and CREATE INDEX."""

    key: KeySpec
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class DropKey:
    """The clause DROP KEY, DROP INDEX or, with `is_constraint`, DROP CONSTRAINT, whose name may be that of a CHECK or a
    foreign key, which has no index."""

    name: str
    if_exists: bool = False
    is_constraint: bool = False


@dataclass(frozen=True, slots=True)
class RenameKey:
    """The clause RENAME KEY."""

    old: str
    new: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ConvertCharset:
    """The clause CONVERT TO CHARACTER SET."""

    charset: CharsetSpec


@dataclass(frozen=True, slots=True)
class SetOptions:
    """Table options inside an ALTER TABLE, such as its charset and engine."""

    options: TableOptions


@dataclass(frozen=True, slots=True)
class RebuildTable:
    """A clause that changes nothing in the model, but makes the server rebuild the table's definition."""


@dataclass(frozen=True, slots=True)
class RenameTo:
    """The clause RENAME TO, which renames the table."""

    name: TableName


@dataclass(frozen=True, slots=True)
class AddPeriod:
    """The clause ADD PERIOD FOR of MariaDB."""

    period: Period


@dataclass(frozen=True, slots=True)
class DropPeriod:
    """The clause DROP PERIOD FOR of MariaDB."""

    name: str


@dataclass(frozen=True, slots=True)
class SetVersioning:
    """The clauses ADD and DROP SYSTEM VERSIONING of MariaDB."""

    is_on: bool


@dataclass(frozen=True, slots=True)
class PartitionToTable:
    """MariaDB's CONVERT PARTITION: creates a table with the same columns."""

    name: TableName


@dataclass(frozen=True, slots=True)
class TableToPartition:
    """MariaDB's CONVERT TABLE: drops a table, which becomes a partition."""

    name: TableName


@dataclass(frozen=True, slots=True)
class ExchangePartition:
    """The clause EXCHANGE PARTITION: swaps the rows of a partition with those of a table of the same columns."""

    name: TableName


Clause = (
    AddColumn | ChangeColumn | RenameColumn | DropColumn | SetColumnVisibility | AddKey | DropKey | RenameKey
    | ConvertCharset | SetOptions | RebuildTable | RenameTo | AddPeriod | DropPeriod | SetVersioning
    | PartitionToTable | TableToPartition | ExchangePartition
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AlterTable:
    """A parsed ALTER TABLE, CREATE INDEX or DROP INDEX."""

    name: TableName
    clauses: tuple[Clause, ...]
    if_exists: bool = False
