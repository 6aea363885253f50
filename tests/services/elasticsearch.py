"""Elasticsearch 7, 8 and 9: bulk, versions, aliases, search; no scripts, no reindex, and no answer on `/`.

Invariant: heap 512 MB, one node, no security. Its start program is a small Java that watches the server's; the server
ends when that one is gone.
"""

import shutil
from pathlib import Path
from typing import Any

from penstock.testing import Report
from tests.services import maven
from tests.services.java import java_home, unzip
from tests.services.search import SearchRelease, SearchServer
from tests.services.service import CachedService

ELASTICSEARCH_8 = SearchRelease("elasticsearch", "8.19.21", is_default=True)
ELASTICSEARCH_7 = SearchRelease("elasticsearch7", "7.17.29")
ELASTICSEARCH_9 = SearchRelease("elasticsearch9", "9.5.3", 21)


class Elasticsearch(SearchServer):
    """A running Elasticsearch."""

    settings_file = "elasticsearch.yml"

    def configure(self) -> None:
        if self.release is not ELASTICSEARCH_7:  # whose distribution does not know it
            self.options = {"xpack.security.enabled": "false", **self.options}
        super().configure()
        java = "\n".join(["-Xms512m", "-Xmx512m", *self.java_options, ""])
        (self.folder / "config/jvm.options").write_text(java, encoding="utf-8")

    def command(self) -> list[str]:
        return [str(self.home / "bin/elasticsearch")]

    def environment(self) -> dict[str, str]:
        return {
            **super().environment(),
            "ES_JAVA_HOME": str(java_home(self.least_java)),
            "ES_PATH_CONF": str(self.folder / "config"),
            "ES_TMPDIR": str(self.folder / "tmp"),
            "CLI_JAVA_OPTS": " ".join(["-Xmx64m", *self.java_options]),
        }


class ElasticsearchService(CachedService):
    """Elasticsearch from Maven."""

    def __init__(self, release: SearchRelease = ELASTICSEARCH_8) -> None:
        self.name, self.release = release.name, release
        self.folder_name, self.is_default = f"elasticsearch-{release.version}", release.is_default

    def download(self, target: Path, cache: Path, report: Report) -> None:
        coordinates = f"org.elasticsearch.distribution.integ-test-zip:elasticsearch:{self.release.version}:zip"
        downloads = target / "downloads"
        (archive,) = maven.fetch([coordinates], downloads, cache=cache, report=report)
        report("unpacking")
        unzip(archive, target)
        shutil.rmtree(downloads)

    def server(self, folder: Path, **settings: Any) -> Elasticsearch:
        return Elasticsearch(self.release, self.require(), folder, **settings)
