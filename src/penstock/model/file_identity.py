"""What tells a log file from another of the same name."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """Identity of a log file: its name, its creation time and the id of the server that wrote it, from its
    FORMAT_DESCRIPTION. No server creates two files of one name within a second.

        identity = FileIdentity("binlog.000007", began=1_700_000_000, server_id=1)
    """

    file: str
    began: int  # seconds since 1970
    server_id: int
