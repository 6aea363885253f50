"""The optional fields of a TABLE_MAP event: their numbers, and which columns are in each list, in the table's order."""

import re
from enum import IntEnum

from penstock.model import WireType

_NUMERIC = frozenset({
    WireType.TINY, WireType.SHORT, WireType.INT24, WireType.LONG, WireType.LONGLONG,
    WireType.NEWDECIMAL, WireType.FLOAT, WireType.DOUBLE,
})  # fmt: skip
_TEXT = frozenset(
    {WireType.VARCHAR, WireType.STRING, WireType.BLOB, WireType.VARCHAR_COMPRESSED, WireType.BLOB_COMPRESSED}
)
LABELLED = frozenset({WireType.ENUM, WireType.SET})
_LAST_WITHOUT_YEAR_SIGN = 15


class MapField(IntEnum):
    """The types of the optional metadata fields of a TABLE_MAP event."""

    SIGNEDNESS = 1
    DEFAULT_CHARSET = 2
    COLUMN_CHARSET = 3
    NAMES = 4
    SET_LABELS = 5
    ENUM_LABELS = 6
    GEOMETRY_KINDS = 7
    KEY = 8
    KEY_WITH_PREFIX = 9
    LABEL_DEFAULT_CHARSET = 10
    LABEL_COLUMN_CHARSET = 11
    VISIBILITY = 12
    DIMENSIONS = 13
    DECLARED = 250  # of this package, not of a server: the declared type of each column that looks like BINARY


def types_with_sign(server_version: str) -> frozenset[WireType]:
    """Return the column types that have a bit in the list of signs, which depends on the server's version."""
    return _NUMERIC | {WireType.YEAR} if _year_has_sign(server_version) else _NUMERIC


def types_with_charset(server_version: str) -> frozenset[WireType]:
    """Return the types that have a charset in the list: for MariaDB a GEOMETRY is a kind of BLOB, for MySQL a VECTOR
    is."""
    return _TEXT | {WireType.GEOMETRY if "MariaDB" in server_version else WireType.VECTOR}


def _year_has_sign(server_version: str) -> bool:
    """Return whether a server writes a sign bit for YEAR: early releases of MySQL 8.0 (seen in 8.0.12) do not."""
    numbers = re.match(r"8\.0\.(\d+)", server_version)
    return not numbers or "MariaDB" in server_version or int(numbers.group(1)) > _LAST_WITHOUT_YEAR_SIGN
