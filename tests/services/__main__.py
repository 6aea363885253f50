"""`python -m tests.services [names…]`: fetch the servers of `make test`, or the named ones, into the cache.

Invariant: one that fails does not keep the others from being fetched; the exit status tells.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from penstock.errors import PenstockError
from penstock.testing import cache_folder
from tests.services import SERVICES, Service


def main(names: Sequence[str]) -> int:
    unknown = [name for name in names if name not in SERVICES]
    if unknown:
        print(f"no such server: {', '.join(unknown)}; the names are {', '.join(SERVICES)}", file=sys.stderr)
        return 2
    cache = cache_folder()
    wanted = [service for name, service in SERVICES.items() if name in names or (not names and service.is_default)]
    failed = [service for service in wanted if not _fetch(service, cache)]
    return 1 if failed else 0


def _fetch(service: Service, cache: Path) -> bool:
    installation = service.find(cache)
    if installation is not None:
        print(f"{service.name:<14} already here   {_size_of(installation, cache)}", flush=True)
        return True
    started = time.monotonic()
    try:
        installation = service.fetch(cache, lambda line: print(f"  {service.name}: {line}", flush=True))
    except PenstockError as error:
        print(f"{service.name:<14} failed: {error}", file=sys.stderr, flush=True)
        return False
    print(f"{service.name:<14} {time.monotonic() - started:8.1f} s     {_size_of(installation, cache)}", flush=True)
    return True


def _size_of(path: Path, cache: Path) -> str:
    """The size of the cache's folder that holds `path`; a system's program is shown by its path."""
    if not path.is_relative_to(cache):
        return str(path)
    folder = cache / path.relative_to(cache).parts[0]
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    return f"{size / 1e6:6.0f} MB"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
