"""A folder with the files of a log as the origin of it. It has no SQL and no clock: all is in the files."""

import threading

from penstock.config import DirectorySettings
from penstock.errors import BinlogError, ConfigurationError, PositionLostError, SourceConnectionError
from penstock.model import FileIdentity, GtidSet, Position
from penstock.source.binlog_source import FIRST, NO_DESTINATION, LogInventory
from penstock.source.directory import DirectoryStream, ends_with_gtid
from penstock.source.file_head import FileHead, read_head
from penstock.source.finding import Verdict
from penstock.source.folder import list_log_sizes, open_folder
from penstock.source.versions import check_version

_NEVER_US = (1 << 63) - 1


class FolderSource:
    """A folder with the files of a log as a source. A last file whose first events are not complete does not count
    yet.

        source = FolderSource(DirectorySettings(path="/logs"))
        files = source.inventory().files
    """

    takes_gtids, is_copied = False, True
    start_timeout_s = 10.0

    def __init__(self, settings: DirectorySettings, destination: str = NO_DESTINATION) -> None:
        self.address, self.destination = settings.address, destination
        self._settings, self._folder = settings, open_folder(settings.path)
        self._lock = threading.Lock()  # of the next two, which make it cheap to ask again
        self._ended: tuple[FileIdentity, Position] | None = None
        self._has_gtids = True  # the last transaction before that

    def check(self, *, is_standby: bool = False) -> None:  # noqa: ARG002 - no folder is one
        """Raise ConfigurationError if the version of the server that wrote the last file is not supported."""
        finding = check_version(self.read_head_of(list(self.sizes())[-1]).server_version)
        if finding.verdict is Verdict.FAIL:
            raise ConfigurationError(f"the log in {self.address} cannot be captured: {finding}")

    def check_answers(self, query: str, timeout_s: float) -> None:  # noqa: ARG002 - a folder is asked nothing
        """Check that the folder can be read. The health check's query and timeout do not count: there is no server."""
        self.check()

    def retention_s(self) -> float:
        """Return 0: a folder is never known to purge."""
        return 0.0

    def inventory(self) -> LogInventory:
        """Return the log files with their sizes, and where the log ends."""
        sizes = self.sizes()
        return LogInventory("", sizes, self._find_end(list(sizes)[-1]), None)

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the log files, in their order; raise SourceConnectionError when there are none."""
        sizes = list_log_sizes(self._folder, self._settings.base)
        while sizes and read_head(self._folder, last := list(sizes)[-1]) is None:
            del sizes[last]
        if not sizes:
            raise SourceConnectionError(f"there are no log files in {self.address}")
        return sizes

    def end(self) -> Position:
        """Return the position at which the log ends now, a transaction boundary."""
        return self._find_end(list(self.sizes())[-1])

    def end_for_display(self) -> Position:
        """Return the position at which the log ends now: a folder has no connections."""
        return self.end()

    def _find_end(self, file: str) -> Position:
        """Return the end of the last whole transaction of the last file. It is searched from the end that was found
        last."""
        with self._lock:
            mark, last = self.file_identity(file), Position(file, FIRST)
            if self._ended is not None and self._ended[0] == mark and self._ended[1].offset <= self._folder.size(file):
                last = self._ended[1]
            else:
                gtids = self.read_head_of(file).gtids
                self._has_gtids = gtids is not None and (gtids.is_mariadb or bool(gtids.ranges))
            with self._open_stream(last, verify=False, follow=False, lenient=True) as stream:
                for block in stream:
                    if block is None or block.file != file:
                        break
                    if block.boundaries.size:
                        last = block.boundary_after(int(block.boundaries[-1]))
                    self._has_gtids = ends_with_gtid(block, before=self._has_gtids)
            self._ended = mark, last
            return last if self._has_gtids else _without_gtids(last)

    def file_identity(self, file: str) -> FileIdentity:
        """Return the identity of a log file, from its first event."""
        return self.read_head_of(file).file_identity

    def previous_gtids(self, file: str) -> GtidSet:
        """Return the GTIDs that were committed before a file was opened, from its first events."""
        gtids = self.read_head_of(file).gtids
        if gtids is None:
            raise BinlogError(f"{self.address}/{file} does not say which GTIDs it begins with")
        return gtids

    def read_head_of(self, file: str) -> FileHead:
        """Return the head of a file; raise PositionLostError when its first events are not there."""
        head = read_head(self._folder, file)
        if head is None:
            raise PositionLostError(f"{self.address}/{file} has lost its first events: copy it again")
        return head

    def now_us(self) -> int:
        """Return a time after all others: a folder has no clock."""
        return _NEVER_US

    def stream(
        self,
        start: Position,
        *,
        verify: bool,
        server_id: int | None = None,  # noqa: ARG002 - this and the others are for servers
        by_gtids: bool = False,  # noqa: ARG002
        semi_sync: bool = False,  # noqa: ARG002
        lenient: bool = False,
        annotations: bool = False,  # noqa: ARG002 - its files have them, and they are always there
    ) -> DirectoryStream:
        """Return a stream of the log's files from a position."""
        return self._open_stream(start, verify=verify, lenient=lenient)

    def _open_stream(self, start: Position, *, verify: bool, lenient: bool, follow: bool = True) -> DirectoryStream:
        """Return a stream of the files, which follows the last one by default."""
        return DirectoryStream(
            self._settings,
            start,
            verify=verify,
            follow=follow,
            lenient=lenient,
            folder=self._folder,
            destination=self.destination,
        )


def _without_gtids(position: Position) -> Position:
    """Return the position without its GTIDs."""
    return Position(position.file, position.offset, position.timestamp, position.epoch)
