"""Debian packages unpacked into a folder of ours, without root and without touching the system.

Invariant: apt runs on a configuration of its own (state, lists, cache, an empty package status) in a temporary
folder. From the machine it takes only where packages come from and how to reach that: sources, keys, `Acquire`.
A program from such a folder runs on the folder's own loader and libraries, so its release need not be the machine's.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import ServerStartError
from penstock.testing.cache import Report
from penstock.testing.sources import read_sources, rewrite_for_suite

# Taken from the machine's apt: proxies, checks, credentials, keys. Not its hooks, pins and extra index files.
_INHERITED = re.compile(
    r"(Acquire::(?!IndexTargets|Changelogs|Languages)|Dir::Etc::(trusted|netrc)|APT::Architectures?\b)"
)
_LIBRARY = re.compile(r"lib(?!.*perl).+")
_INSTALLED = re.compile(r"^Inst (\S+) ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PackageFolder:
    """A folder into which Debian packages were unpacked; `root` is used as the root of their paths.

    folder = unpack_packages(cache, ["mariadb-server"], print)
    command = folder.command_for("usr/sbin/mariadbd")
    """

    root: Path

    def path_of(self, inside: str) -> Path:
        """Return the path of a file of the packages."""
        return self.root / inside

    def command_for(self, program: str) -> list[str]:
        """Return how to run `usr/sbin/…`: by the folder's own loader, with the folder's own libraries."""
        # Not lib64/: there it is a link that may point to the machine's loader.
        loaders = sorted({*self.root.glob("lib/*/ld-linux*.so.*"), *self.root.glob("usr/lib/*/ld-linux*.so.*")})
        if not loaders or not self.path_of(program).is_file():
            raise ServerStartError(
                f"{self.root} has no {program} or no loader for it: remove the folder to fetch it again"
            )
        triplet = loaders[0].parent.name
        libraries = [str(self.root / base / triplet) for base in ("usr/lib", "lib") if (self.root / base).is_dir()]
        return [str(loaders[0]), "--library-path", ":".join(libraries), str(self.path_of(program))]


def unpack_packages(
    folder: Path,
    packages: Sequence[str],
    report: Report,
    *,
    without_libraries: Sequence[str] = (),
    suite: str | None = None,
) -> PackageFolder:
    """Unpack the named packages and the libraries they need into an existing folder."""
    apt = _PrivateApt(folder / ".apt", suite)
    report("reading package lists")
    updated = apt.run("update", "-qq", is_required=False)
    names = [*apt.list_dependencies(packages, updated), *without_libraries]
    report(f"downloading {len(names)} packages")
    apt.run("download", "-qq", *names)
    report("unpacking")
    for package in sorted(apt.downloads.glob("*.deb")):
        _run_checked(["dpkg-deb", "-x", str(package), str(folder)])
    shutil.rmtree(apt.folder)
    return PackageFolder(folder)


class _PrivateApt:
    """Apt with everything it writes below `folder`."""

    def __init__(self, folder: Path, suite: str | None) -> None:
        for program in ("apt-get", "apt-config", "dpkg-deb"):
            if shutil.which(program) is None:
                raise ServerStartError(
                    f"{program} was not found: packages can be unpacked on Debian and its relatives only"
                )
        self.folder = folder
        self.downloads = folder / "downloads"
        for name in ("sources", "none", "state/lists/partial", "cache/archives/partial", "downloads"):
            (folder / name).mkdir(parents=True)
        (folder / "state/status").touch()
        self._write_sources(suite)
        configuration = folder / "apt.conf"
        configuration.write_text(_build_configuration(folder), encoding="utf-8")
        self._environment = {**os.environ, "APT_CONFIG": str(configuration), "LC_ALL": "C"}

    def run(self, *arguments: str, is_required: bool = True) -> str:
        """Run apt with the private configuration, and return its output."""
        command = ["apt-get", *arguments]
        return _run_checked(command, folder=self.downloads, environment=self._environment, is_required=is_required)

    def list_dependencies(self, packages: Sequence[str], updated: str) -> list[str]:
        """Return the named packages and the libraries among all that installing them would bring."""
        try:
            plan = self.run("-s", "install", "--no-install-recommends", *packages)
        except ServerStartError as error:
            # A source that could not be read matters only if the packages are missing for it.
            raise ServerStartError(f"{error}\nbefore that, apt-get update said:\n{_indent(updated)}") from error
        names = {name.partition(":")[0] for name in _INSTALLED.findall(plan)}
        return sorted(name for name in names if name in packages or _LIBRARY.fullmatch(name))

    def _write_sources(self, suite: str | None) -> None:
        """Write the machine's sources, for another suite if one is given."""
        asked = _run_checked(
            ["apt-config", "shell", "main", "Dir::Etc::sourcelist/f", "parts", "Dir::Etc::sourceparts/d"]
        )
        locations = dict(word.split("=", 1) for word in shlex.split(asked))
        machine = read_sources(Path(locations["main"]), Path(locations["parts"]))
        texts = (
            machine if suite is None else {name: rewrite_for_suite(name, text, suite) for name, text in machine.items()}
        )
        if not "".join(texts.values()).strip():
            raise ServerStartError(
                f"apt has no source to take packages {f'of {suite} ' if suite else ''}from: "
                f"looked at {locations['main']} and at *.list and *.sources in {locations['parts']}"
            )
        for name, text in texts.items():
            (self.folder / "sources" / name).write_text(text, encoding="utf-8")


def _build_configuration(folder: Path) -> str:
    """Return the apt configuration that keeps everything below `folder`."""
    inherited = [line for line in _run_checked(["apt-config", "dump"]).splitlines() if _INHERITED.match(line)]
    own = {
        "Dir::Etc::main": "none/file",
        "Dir::Etc::parts": "none",
        "Dir::Etc::sourcelist": "none/file",
        "Dir::Etc::sourceparts": "sources",
        "Dir::Etc::preferences": "none/file",
        "Dir::Etc::preferencesparts": "none",
        "Dir::State": "state",
        "Dir::State::status": "state/status",
        "Dir::Cache": "cache",
        "Dir::Log": "cache",
    }
    lines = [f'{name} "{folder / value}";' for name, value in own.items()]
    # Apt as root would drop to a user who cannot reach a folder in somebody's home.
    lines.append('APT::Sandbox::User "root";')
    lines.append('Acquire::Languages "none";')
    lines.append('Acquire::IndexTargets::deb-src::Sources::DefaultEnabled "false";')
    return "\n".join([*inherited, *lines, ""])


def _run_checked(
    command: list[str],
    *,
    folder: Path | None = None,
    environment: dict[str, str] | None = None,
    is_required: bool = True,
) -> str:
    """Run a command and return its output; a failure is a ServerStartError with its last lines."""
    done = subprocess.run(  # noqa: S603 - apt and dpkg, with names from our own code
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode and is_required:
        raise ServerStartError(f"`{shlex.join(command[:3])} …` failed:\n{_indent(done.stdout)}")
    return done.stdout


def _indent(text: str) -> str:
    """Return a text with each line indented."""
    return "\n".join(f"  {line}" for line in text.strip().splitlines()[-12:])
