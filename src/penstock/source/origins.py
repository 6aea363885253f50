"""The origin that settings name."""

from penstock.config import DirectorySettings, SourceSettings
from penstock.source.folder_origin import FolderOrigin
from penstock.source.origin import Origin
from penstock.source.server_origin import ServerOrigin


def origin_of(settings: SourceSettings | DirectorySettings) -> Origin:
    return FolderOrigin(settings) if isinstance(settings, DirectorySettings) else ServerOrigin(settings)
