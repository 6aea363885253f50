"""Files from Maven by coordinates.

Invariant: the local repository is ours, inside the cache, so what a user's own holds or lacks does not matter; one
Maven at a time uses it, because Maven's own locking does not cover two processes.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import ServerStartError
from penstock.testing import Report, lock_folder
from tests.services.system import require_program

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


@dataclass(frozen=True, slots=True)
class Artifact:
    """One file; `GROUP:NAME:VERSION` or `GROUP:NAME:VERSION:TYPE` in Maven's words."""

    group: str
    name: str
    version: str
    type: str = "jar"

    @classmethod
    def parse(cls, coordinates: str) -> "Artifact":
        return cls(*coordinates.split(":"))

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}.{self.type}"

    def folder_in(self, repository: Path) -> Path:
        return repository.joinpath(*self.group.split("."), self.name, self.version)

    def as_dependency(self, *, is_alone: bool) -> str:
        return (
            f"<dependency><groupId>{self.group}</groupId><artifactId>{self.name}</artifactId>"
            f"<version>{self.version}</version><type>{self.type}</type>{_ALONE if is_alone else ''}</dependency>"
        )


def fetch(
    coordinates: Sequence[str], into: Path, *, cache: Path, report: Report, with_dependencies: bool = False
) -> list[Path]:
    """Copy the named artifacts into a folder; returns their paths in the order asked for."""
    program = require_program(["mvn"], ["maven"], report)
    artifacts = [Artifact.parse(each) for each in coordinates]
    repository = cache / "maven-repository"
    report(f"downloading {', '.join(artifact.file_name for artifact in artifacts)}")
    with tempfile.TemporaryDirectory() as folder, lock_folder(repository, report):
        project = Path(folder) / "pom.xml"
        project.write_text(_project(artifacts, with_dependencies=with_dependencies), encoding="utf-8")
        done = subprocess.run(
            [
                *(program, "-q", "-B", "-f", project, PLUGIN),
                *(f"-Dmaven.repo.local={repository}", f"-DoutputDirectory={into}"),
            ],
            env={**os.environ, "MAVEN_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        # The copy is what counts; a second one of 100 MB in the repository would only take space.
        for artifact in artifacts:
            shutil.rmtree(artifact.folder_in(repository), ignore_errors=True)
    paths = [into / artifact.file_name for artifact in artifacts]
    if done.returncode or not all(path.is_file() for path in paths):
        tail = "\n".join(f"  {line}" for line in done.stdout.splitlines()[-12:])
        raise ServerStartError(f"Maven could not fetch {' '.join(coordinates)}:\n{tail}")
    return paths


def _project(artifacts: Sequence[Artifact], *, with_dependencies: bool) -> str:
    wanted = "".join(artifact.as_dependency(is_alone=not with_dependencies) for artifact in artifacts)
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>penstock</groupId><artifactId>services</artifactId>"
        f"<version>1</version><packaging>pom</packaging><dependencies>{wanted}</dependencies></project>\n"
    )
