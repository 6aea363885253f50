"""What tells a log file from another of the same name."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """A server never opens a file of one name twice in a second: as each file says itself, when it began and whose it
    is."""

    file: str
    began: int  # seconds since 1970
    server_id: int
