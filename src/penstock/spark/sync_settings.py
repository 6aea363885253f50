"""What `penstock sync` is told: which documents, from which source, into which indexes."""

from dataclasses import dataclass
from pathlib import Path

from penstock.client import ServerAddress
from penstock.config import SourceSettings
from penstock.spark.index_target import IndexTarget


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """The settings of one sync job; all of its document specs share one stream and one checkpoint."""

    spec_files: tuple[Path, ...]
    source: SourceSettings
    server: ServerAddress
    destination: str
    target: IndexTarget  # where the indexes are; each spec names its own
    checkpoint: Path
    replica: SourceSettings | None = None  # of the source; documents are read from it
