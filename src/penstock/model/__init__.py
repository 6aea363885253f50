"""Plain frozen data that every room speaks: positions, tables, kinds of change."""

from penstock.model.change import ChangeKind
from penstock.model.file_mark import FileMark
from penstock.model.gtid_set import GtidSet
from penstock.model.position import Position
from penstock.model.sequence import Sequence
from penstock.model.table import Column, TableName, TableSchema, WireType

__all__ = [
    "ChangeKind",
    "Column",
    "FileMark",
    "GtidSet",
    "Position",
    "Sequence",
    "TableName",
    "TableSchema",
    "WireType",
]
