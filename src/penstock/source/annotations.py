"""The statements behind rows in MariaDB's log (ANNOTATE_ROWS): when a server is asked for them, and leaving them out.

MariaDB sends them only to a replica that asks. From 11.4 on events inside a transaction have no end position, and only
the sizes of all events say where each one lies: there they are always asked for, so that the same log has the same
positions, read from its server or from its files. A stream that does not want them leaves them out itself.
"""

import re
from dataclasses import replace

import numpy as np

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import EventType

_FIRST_WITHOUT_ENDS = (11, 4)
_VERSION = re.compile(r"(?:5\.5\.5-)?(\d+)\.(\d+)")  # old clients need the prefix, which is no version


def may_lack_end_positions(server_info: str) -> bool:
    """Return whether events of this server's log may lack end positions, by the version that it sends to a new
    connection."""
    version = _VERSION.match(server_info)
    is_new = version is None or (int(version[1]), int(version[2])) >= _FIRST_WITHOUT_ENDS
    return "MariaDB" in server_info and is_new


def remove_annotations(block: Block) -> Block | None:
    """Return the block without the annotations that repeat the SQL of row events; None when it has nothing else."""
    are_others = block.column("kind") != EventType.MARIADB_ANNOTATE_ROWS
    if are_others.all():
        return block
    if not are_others.any():
        return None
    return replace(block.take(np.flatnonzero(are_others)), executed=block.executed_before(0))
