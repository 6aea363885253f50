"""Chromium for tests of web pages, driven by Playwright.

Invariant: the machine's own browser; it is a system package, not a folder of the cache.
"""

from pathlib import Path

from penstock.testing import Report
from tests.services.service import Service
from tests.services.system import find_program, require_program

_NAMES = ("chromium", "chromium-browser", "google-chrome")
# A page without any font has no text, so its elements have no size.
_PACKAGES = ("chromium", "fonts-dejavu-core")


class Chromium(Service):
    """The browser's executable."""

    name = "chromium"

    def find(self, cache: Path) -> Path | None:  # noqa: ARG002 - not in the cache
        program = find_program(*_NAMES)
        return Path(program) if program else None

    def fetch(self, cache: Path, report: Report) -> Path:  # noqa: ARG002 - not in the cache
        return Path(require_program(_NAMES, _PACKAGES, report))
