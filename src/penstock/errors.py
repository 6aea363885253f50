"""Every error Penstock raises on purpose, arranged by what the operator does next.

A message says what happened, where (instance, file:offset, table) and what to do. Errors cross Spark's
processes, so each one pickles: an error is its message and nothing else that cannot be pickled.
`transient` answers one question: does the same call make sense again later, unchanged?
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.model import Position


class PenstockError(Exception):
    """Root of all errors that Penstock raises on purpose."""

    transient = False


class ConfigurationError(PenstockError):
    """A setting, a document spec or a server variable is wrong: change it and start again."""


class UnknownDestinationError(ConfigurationError):
    """A server has no destination of this name."""


class MissingExtraError(ConfigurationError):
    """An optional dependency is not installed."""

    @classmethod
    def for_extra(cls, extra: str, needed_for: str) -> "MissingExtraError":
        """Build the error for a feature that needs an extra which is not installed."""
        return cls(f"{needed_for} needs the extra '{extra}': pip install 'penstock[{extra}]'")


class SourceConnectionError(PenstockError):
    """The source cannot be reached, or the connection broke."""

    transient = True


class ServerUnavailableError(PenstockError):
    """A Penstock server, or a canal server, cannot be reached, or the connection to it broke."""

    transient = True


class ServerIdTakenError(SourceConnectionError):
    """Another replica has connected with our server id, and the source has ended our connection."""


class SourceBehindError(SourceConnectionError):
    """A standby or a replica has not executed yet what is in the binlog of the source."""


class AuthenticationError(PenstockError):
    """The source refused the user, the password or a privilege."""


class PositionLostError(PenstockError):
    """A position is no longer in the source's log."""


class LogHoleError(PositionLostError):
    """Binlog files are missing between two that exist."""


class ProtocolError(PenstockError):
    """A peer sent what the protocol does not allow."""


class BinlogError(PenstockError):
    """Bytes of the log cannot be decoded; the message carries their coordinates."""


class BinlogWarning(UserWarning):
    """A binlog was read to its end, but changes may be missing in it, as in a truncated file."""


class SchemaError(PenstockError):
    """A table's columns are unknown, not supported, or not those that a reader asked for."""


class IncompatibleColumnError(SchemaError):
    """A column has a type in the log that does not fit the one that its reader was started with."""

    table = ""  # database.table
    column = ""
    position: "Position | None" = None  # of the rows that have it


class TableAlteredError(SchemaError):
    """A table has other columns than when a stream of it began; the client opens the stream again."""

    transient = True


class TransformError(PenstockError):
    """The function that a document spec names for its transform failed on a document: correct it, or the data."""


class MirrorChangedError(PenstockError):
    """The files of a mirror were replaced while they were read: read them again."""

    transient = True


class StoreFullError(PenstockError):
    """There is no room on the disk; writing resumes when there is."""

    transient = True


class StoreError(PenstockError):
    """The event store was used against its rules, or is closed."""


class BlocksFreedError(StoreError):
    """What a reader without a cursor was reading was freed from the store: read it again, from the source's log."""

    transient = True


class NotCapturedError(PenstockError):
    """A part of the binlog that is asked for has not been captured yet: the same call succeeds later."""

    transient = True


class CoordinationError(PenstockError):
    """ZooKeeper cannot be reached, or refuses."""

    transient = True


class NotRunningError(PenstockError):
    """A destination does not run on this server, or not yet."""

    transient = True


class StartingError(NotRunningError):
    """A destination is configured and is being started: the same call succeeds once it runs."""


class MetaError(PenstockError):
    """A subscription, a batch or a cursor was used against its rules, or cannot be persisted."""


class MetaInUseError(MetaError):
    """Subscriptions or cursors are to be changed while a running server owns them: only that server can do it."""


class FencedError(PenstockError):
    """Another server has won a newer election and taken over the destination: this server must stop it."""


class SinkError(PenstockError):
    """A search index or queue did not take a write."""


class SinkUnavailableError(SinkError):
    """The sink is down or overloaded: the same write later may succeed."""

    transient = True


class SinkRejectedError(SinkError):
    """The sink refused these documents for good."""


class WorkerLostError(PenstockError):
    """A process in which Spark runs Python is gone, or has no room on its disk; others take its place."""

    transient = True


class IndexDifferentError(PenstockError):
    """A new index is not equal to the database, so readers do not get it."""


class ServerStartError(PenstockError):
    """A server of `penstock.testing` could not be fetched or started; the message ends with its last log lines."""
