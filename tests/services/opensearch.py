"""OpenSearch 2: bulk, versions, aliases, search, and the common analyzers; no scripts, no reindex.

Invariant: heap 512 MB, one node, started by its main class, because its start script would start a second Java.
"""

import shutil
from pathlib import Path
from typing import Any

from penstock.testing import Report
from tests.services import maven
from tests.services.java import java_home, unzip
from tests.services.search import SearchServer
from tests.services.service import CachedService

VERSION = "2.19.6"
_MODULE = f"""\
name=analysis-common
description=Common analyzers
version={VERSION}
opensearch.version={VERSION}
java.version=11
classname=org.opensearch.analysis.common.CommonAnalysisPlugin
"""
# What its own start script would add. Without the line on log4j's hook, a stop takes half a minute.
_FROM_ITS_LAUNCHER = (
    "-Djava.security.manager=allow",
    "-Djava.awt.headless=true",
    "-Djna.nosys=true",
    "-Dio.netty.noUnsafe=true",
    "-Dio.netty.noKeySetOptimization=true",
    "-Dio.netty.recycler.maxCapacityPerThread=0",
    "-Dio.netty.allocator.numDirectArenas=0",
    "-Dlog4j.shutdownHookEnabled=false",
    "-Dlog4j2.disable.jmx=true",
    "-Djava.locale.providers=SPI,COMPAT",
)


class OpenSearch(SearchServer):
    """A running OpenSearch."""

    name = "opensearch"
    settings_file = "opensearch.yml"

    def command(self) -> list[str]:
        return [
            str(java_home() / "bin/java"),
            "-Xms512m",
            "-Xmx512m",
            *self.java_options,
            *_FROM_ITS_LAUNCHER,
            f"-Dopensearch.path.home={self.home}",
            f"-Dopensearch.path.conf={self.folder / 'config'}",
            *("-cp", f"{self.home}/lib/*", "org.opensearch.bootstrap.OpenSearch"),
        ]


class OpenSearchService(CachedService):
    """OpenSearch from Maven."""

    name = "opensearch"
    folder_name = f"opensearch-{VERSION}"

    def download(self, target: Path, cache: Path, report: Report) -> None:
        coordinates = [
            f"org.opensearch.distribution.integ-test-zip:opensearch:{VERSION}:zip",
            f"org.opensearch.plugin:analysis-common:{VERSION}",
        ]
        downloads = target / "downloads"
        archive, analysis = maven.fetch(coordinates, downloads, cache=cache, report=report)
        report("unpacking")
        unzip(archive, target)
        module = target / "modules/analysis-common"
        module.mkdir()
        (module / "plugin-descriptor.properties").write_text(_MODULE, encoding="utf-8")
        analysis.rename(module / analysis.name)
        shutil.rmtree(downloads)

    def server(self, folder: Path, **settings: Any) -> OpenSearch:
        return OpenSearch(self.require(), folder, **settings)
