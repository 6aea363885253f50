"""The origin that settings name."""

from penstock.config import DirectorySettings, SourceSettings
from penstock.source.binlog_source import BinlogSource
from penstock.source.folder_source import FolderSource
from penstock.source.server_source import ServerSource


def open_source(settings: SourceSettings | DirectorySettings) -> BinlogSource:
    """Return the source that the settings describe: a server, or a folder of its log files."""
    return FolderSource(settings) if isinstance(settings, DirectorySettings) else ServerSource(settings)
