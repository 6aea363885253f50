"""Which server a chunk was read from. Behind one address there may be another server than a moment ago: its rows do not
belong to the log that is captured, although its positions may look like those of that log."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.model import FileIdentity, Position
from penstock.source.snapshot_position import Rows

_UUID = "SHOW GLOBAL VARIABLES LIKE 'server_uuid'"
_HEAD = "SHOW BINLOG EVENTS IN '{}' LIMIT 1"
_SERVER_ID = 3  # column of a row of SHOW BINLOG EVENTS


@dataclass(frozen=True, slots=True)
class ServerMark:
    """Identifies the server at the other end of the connection that reads a chunk: its uuid, which MariaDB does not
    have; where its binlog ends; and the id of the server that wrote the first event of that binlog file."""

    uuid: str
    end: Position
    server_id: int

    @classmethod
    def read(cls, query: Callable[[str], Rows], end: Position) -> "ServerMark":
        """Ask the server on the connection of a chunk, whose read view was opened when the log ended at `end`."""
        uuid = next((str(value) for _, value in query(_UUID)), "")
        ((*head, _),) = query(_HEAD.format(end.file))
        return cls(uuid, end, int(head[_SERVER_ID]))

    def difference_from(self, uuid: str, files: Mapping[str, FileIdentity], captured: Position) -> str:
        """Return why this is not the server of the log that is captured, or an empty text. That one has a uuid and
        files, as far as they are known, and its log was captured up to a position before this server was asked."""
        if self.uuid and uuid and self.uuid != uuid:
            return f"its uuid is {self.uuid}, and that of the captured server is {uuid}"
        known = files.get(self.end.file)
        if known is not None and known.server_id != self.server_id:
            return f"its {known.file} was written by server {self.server_id}, and the captured one by {known.server_id}"
        if (self.end.file_number, self.end.offset) < (captured.file_number, captured.offset):
            return f"its log ends at {self.end.file}:{self.end.offset}, and is captured up to {captured} already"
        return ""
