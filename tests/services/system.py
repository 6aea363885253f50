"""Programs that a test machine needs and may lack.

Invariant: the system is changed only by root, only with apt-get install; everybody else gets the line to run.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence

from penstock.errors import ServerStartError
from penstock.testing import Report


def find_program(*names: str) -> str | None:
    return next(filter(None, map(shutil.which, names)), None)


def require_program(names: Sequence[str], packages: Sequence[str], report: Report) -> str:
    """The path of a program; Debian's `packages` are installed for it when it is missing."""
    program = find_program(*names)
    if program is None and os.geteuid() == 0 and shutil.which("apt-get"):
        report(f"installing {' '.join(packages)}")
        _install(packages)
        program = find_program(*names)
    if program is None:
        raise missing(names[0], packages)
    return program


def missing(name: str, packages: Sequence[str]) -> ServerStartError:
    return ServerStartError(
        f"{name} was not found: install it; on Debian, as root: apt-get install {' '.join(packages)}"
    )


def _install(packages: Sequence[str]) -> None:
    install = ["install", "-y", "--no-install-recommends", *packages]
    # The lists may be old or were never fetched: refresh them only when it matters.
    if _apt_get(install).returncode:
        _apt_get(["update"])
        done = _apt_get(install)
        if done.returncode:
            tail = "\n".join(f"  {line}" for line in done.stdout.splitlines()[-12:])
            raise ServerStartError(f"`apt-get {shlex.join(install)}` failed:\n{tail}")


def _apt_get(arguments: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120", *arguments],  # noqa: S607 - whichever apt-get is on PATH
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
