"""OpenSearch 1, 2 and 3: bulk, versions, aliases, search, and the common analyzers; no scripts, no reindex.

Invariant: heap 512 MB, one node, started by its main class, because its start script would start a second Java.
"""

import shutil
from pathlib import Path
from typing import Any

from penstock.testing import Report
from tests.services import maven
from tests.services.java import java_home, unzip
from tests.services.search import SearchRelease, SearchServer
from tests.services.service import CachedService

OPENSEARCH_2 = SearchRelease("opensearch", "2.19.6", is_default=True)
OPENSEARCH_1 = SearchRelease("opensearch1", "1.3.20")
OPENSEARCH_3 = SearchRelease(
    "opensearch3",
    "3.8.0",
    21,
    (
        "--add-modules=jdk.incubator.vector",
        "--add-opens=java.base/java.nio=ALL-UNNAMED",
        "-javaagent:{home}/agent/opensearch-agent.jar",
    ),
)
_NO_MODULE_TO_ADD = {"1.3.20", "3.8.0"}  # the first is not to be had, the other has it
_MODULE = """\
name=analysis-common
description=Common analyzers
version={version}
opensearch.version={version}
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

    settings_file = "opensearch.yml"

    def command(self) -> list[str]:
        # Java 24 has no security manager any more, and refuses to start when one is asked for.
        own = [option.format(home=self.home) for option in self.release.java_options]
        options = [option for option in _FROM_ITS_LAUNCHER if "security.manager" not in option or not own]
        return [
            str(java_home(self.least_java) / "bin/java"),
            "-Xms512m",
            "-Xmx512m",
            *self.java_options,
            *options,
            *own,
            f"-Dopensearch.path.home={self.home}",
            f"-Dopensearch.path.conf={self.folder / 'config'}",
            *("-cp", f"{self.home}/lib/*", "org.opensearch.bootstrap.OpenSearch"),
        ]


class OpenSearchService(CachedService):
    """OpenSearch from Maven."""

    def __init__(self, release: SearchRelease = OPENSEARCH_2) -> None:
        self.name, self.release = release.name, release
        self.folder_name, self.is_default = f"opensearch-{release.version}", release.is_default

    def download(self, target: Path, cache: Path, report: Report) -> None:
        version = self.release.version
        coordinates = [f"org.opensearch.distribution.integ-test-zip:opensearch:{version}:zip"]
        if version not in _NO_MODULE_TO_ADD:
            coordinates.append(f"org.opensearch.plugin:analysis-common:{version}")
        downloads = target / "downloads"
        archive, *modules = maven.fetch(coordinates, downloads, cache=cache, report=report)
        report("unpacking")
        unzip(archive, target)
        for analysis in modules:
            module = target / "modules/analysis-common"
            module.mkdir()
            (module / "plugin-descriptor.properties").write_text(_MODULE.format(version=version), encoding="utf-8")
            analysis.rename(module / analysis.name)
        shutil.rmtree(downloads)

    def server(self, folder: Path, **settings: Any) -> OpenSearch:
        return OpenSearch(self.release, self.require(), folder, **settings)
