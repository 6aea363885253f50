"""Servers that run on Java, some of which refuse to run as root.

Invariant: such a server runs as `nobody` and owns its folder; its program files are linked there, because the cache
is in somebody's home, where `nobody` cannot look.
"""

import os
import pwd
import re
import shutil
import zipfile
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.errors import ServerStartError
from penstock.testing import PrivateServer, ServerProcess
from tests.services.system import find_program, missing

# Tests are short: the first compiler only, one collector thread, no shared performance file.
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
FOLDERS = ("config", "data", "logs", "tmp")


def java_home(least: int = 0) -> Path:
    """The Java to use: JAVA_HOME, else the one on PATH; if that is older than `least`, another one of this machine."""
    named = os.environ.get("JAVA_HOME")
    program = Path(named) / "bin/java" if named else Path(find_program("java") or "java")
    if not program.is_file():
        raise missing(str(program), ["openjdk-17-jre-headless"])
    home = program.resolve().parent.parent
    homes = [home, *sorted(Path("/usr/lib/jvm").glob("*"))] if least else [home]
    fitting = [each for each in homes if _java_release(each) >= least]
    if not fitting:
        raise ServerStartError(f"a Java of at least release {least} is needed, and there is none: set JAVA_HOME to one")
    return fitting[0]


def _java_release(home: Path) -> int:
    """Return the number of a Java's release; 0 if it does not say it."""
    try:
        text = (home / "release").read_text(encoding="utf-8")
    except OSError:
        return 0
    version = re.search(r'^JAVA_VERSION="(\d+)', text, re.MULTILINE)
    return int(version[1]) if version else 0


def unzip(archive: Path, into: Path) -> None:
    """Unpack a distribution without its top folder; everybody can read it, and run what is in bin/."""
    with zipfile.ZipFile(archive) as files:
        for member in files.infolist():
            member.filename = member.filename.partition("/")[2]
            if member.filename:
                path = Path(files.extract(member, into))
                path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)


class JavaServer(PrivateServer):
    """A Java server in `folder`, with its program files in `home`."""

    refuses_root = False
    least_java = 0  # the oldest release of Java that it runs on, where that is newer than ours

    def __init__(
        self,
        home: Path,
        folder: Path,
        *,
        port: int | None = None,
        options: Mapping[str, str | int] | None = None,
        java_options: Sequence[str] = QUICK,
    ) -> None:
        super().__init__(folder, port)
        self.home = home
        self.options = dict(options or {})
        self.java_options = [*java_options, f"-Djava.io.tmpdir={self.folder / 'tmp'}"]

    @abstractmethod
    def command(self) -> list[str]: ...

    @abstractmethod
    def configure(self) -> None:
        """Write the configuration files, before every start."""

    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}

    def launch(self) -> ServerProcess:
        java_home(self.least_java)
        user = "nobody" if self.refuses_root and os.geteuid() == 0 else None
        for name in FOLDERS:
            (self.folder / name).mkdir(exist_ok=True)
        self.configure()
        if user is not None:
            self._bring_home()
            self._give_to(user)
        return ServerProcess.start(
            self.name,
            self.command(),
            log=self.log,
            user=user,
            folder=self.folder,
            environment=self.environment(),
        )

    def _bring_home(self) -> None:
        local = self.folder / "home"
        if not local.is_dir():
            shutil.copytree(self.home, local, copy_function=_link_or_copy)
            # Whatever the umask was when the cache was filled.
            for path in [local, *local.rglob("*")]:
                path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
        self.home = local

    def _give_to(self, user: str) -> None:
        closed = [parent for parent in self.folder.parents if not parent.stat().st_mode & 0o001]
        if closed:
            raise ServerStartError(
                f"{self.name} runs as {user}, who cannot pass {closed[0]}: use a folder that is open"
            )
        account = pwd.getpwnam(user)
        self.folder.chmod(0o755)
        own = [self.folder, *(self.folder / name for name in FOLDERS), *(self.folder / "config").rglob("*")]
        for path in own:
            os.chown(path, account.pw_uid, account.pw_gid)


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
