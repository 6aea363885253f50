"""What a source is, asked before its log is followed: which server, which files, and whether they are those we know."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from penstock.config import SourceSettings
from penstock.errors import PositionLostError
from penstock.model import FileMark, GtidSet, Position
from penstock.source.connection import connect, translated
from penstock.source.preflight import current_position
from penstock.source.stream import BinlogStream

_FIRST = 4  # byte of a file after its magic


@dataclass(frozen=True, slots=True)
class Seen:
    server: str  # its uuid; "" where it has none
    sizes: dict[str, int]  # of its log files, in their order
    end: Position
    purged: GtidSet | None  # MySQL: what was in files that are gone

    @property
    def files(self) -> Sequence[str]:
        return list(self.sizes)

    @property
    def oldest(self) -> Position:
        return Position(self.files[0], _FIRST, epoch=self.end.epoch)


def look_at(settings: SourceSettings) -> Seen:
    with closing(connect(settings)) as connection:
        end = current_position(connection, settings)
        with translated(settings), connection.cursor() as cursor:
            cursor.execute("SHOW BINARY LOGS")
            sizes = {str(row[0]): int(row[1]) for row in cursor.fetchall()}
            cursor.execute("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'gtid_purged')")
            found = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
    if not sizes:
        raise PositionLostError(f"{settings.address} has no log files")
    purged = GtidSet.parse(found["gtid_purged"]) if "gtid_purged" in found and end.gtids is not None else None
    return Seen(found.get("server_uuid", ""), sizes, end, purged)


def mark_of(settings: SourceSettings, file: str) -> FileMark:
    """As the file's first event says."""
    with BinlogStream(settings, Position(file, _FIRST), verify=False) as stream:
        for _ in stream:
            if stream.mark is not None and stream.mark.file == file:
                return stream.mark
    raise PositionLostError(f"{settings.address} sent nothing of its log file {file}")
