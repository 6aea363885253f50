"""The origin that settings name."""

from penstock.config import DirectorySettings, SourceSettings
from penstock.source.binlog_source import NO_DESTINATION, BinlogSource
from penstock.source.folder_source import FolderSource
from penstock.source.server_source import ServerSource


def open_source(settings: SourceSettings | DirectorySettings, destination: str = NO_DESTINATION) -> BinlogSource:
    """Return the source that the settings describe: a server, or a folder of its log files."""
    if isinstance(settings, DirectorySettings):
        return FolderSource(settings, destination)
    return ServerSource(settings, destination)
