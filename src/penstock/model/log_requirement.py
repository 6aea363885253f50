"""What a server must have executed before it may be asked for the rows of a batch of changes."""

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.errors import ConfigurationError
from penstock.model.gtid_set import GtidSet
from penstock.model.position import Position


@dataclass(frozen=True, slots=True)
class LogRequirement:
    """Transactions that a server must have executed, so that its rows are not older than changes that came from
    somewhere else: by their GTIDs, or where they have none, by the position of the log that they end at.

        LogRequirement.of_changes(["0-1-17", "0-1-18"], Position("binlog.000007", 4711), "1-1700000000")
    """

    gtids: str = ""  # a set of MySQL, or of MariaDB the last one of each domain and server
    end: Position | None = None  # of transactions without GTIDs
    server_id: int | None = None  # of the server whose log that position is in; None when it is not known

    @classmethod
    def of_changes(cls, gtids: Iterable[str | None], end: Position | None, log: str = "") -> "LogRequirement":
        """Return what a server must have for changes with these GTIDs, None for one without, up to a position of a log
        with the identity `SERVER_ID-SECOND`."""
        names = set(gtids)
        named = [name for name in names if name]
        needs_position = len(named) < len(names) and end is not None
        return cls(_compact(named), end if needs_position else None, _server_id(log) if needs_position else None)

    @classmethod
    def of_position(cls, position: Position, log: str = "") -> "LogRequirement":
        """Return what a server must have to have reached a position of a log with the identity `SERVER_ID-SECOND`."""
        if position.gtids is not None:
            return cls(position.gtids.text)
        return cls("", position, _server_id(log))


def mariadb_numbers(gtids: str) -> dict[tuple[int, int], int]:
    """Return the highest number of each domain and server in a list of MariaDB's GTIDs."""
    numbers: dict[tuple[int, int], int] = {}
    for gtid in filter(None, gtids.split(",")):
        domain, server, number = map(int, gtid.strip().split("-"))
        numbers[domain, server] = max(number, numbers.get((domain, server), 0))
    return numbers


def is_mariadb_list(gtids: str) -> bool:
    """Return whether GTIDs are written as MariaDB does."""
    return GtidSet.parse(gtids).is_mariadb


def _compact(gtids: list[str]) -> str:
    """Return GTIDs as one text: ranges of MySQL, or of MariaDB the last one of each domain and server."""
    text = ",".join(gtids)
    if not text or not is_mariadb_list(gtids[0]):
        return GtidSet.parse(text).text
    return ",".join(f"{domain}-{server}-{number}" for (domain, server), number in sorted(mariadb_numbers(text).items()))


def _server_id(log: str) -> int | None:
    """Return the id of the server that has written a log file, from the file's identity."""
    number, _, began = log.partition("-")
    if not log:
        return None
    if not (number.isdigit() and began):
        raise ConfigurationError(f"not the identity of a log file: {log!r}")
    return int(number)
