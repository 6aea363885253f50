"""Plain frozen data that every room speaks: positions, tables, kinds of change."""

from penstock.model.change import ChangeKind
from penstock.model.file_identity import FileIdentity
from penstock.model.gtid_set import GtidSet
from penstock.model.log_requirement import LogRequirement
from penstock.model.position import Position
from penstock.model.sequence import Sequence
from penstock.model.table import Column, TableName, TableSchema, WireType

__all__ = [
    "ChangeKind",
    "Column",
    "FileIdentity",
    "GtidSet",
    "LogRequirement",
    "Position",
    "Sequence",
    "TableName",
    "TableSchema",
    "WireType",
]
