"""Fails when a dependency or build file holds a download address, or a tracked file holds a path of one machine.

Addresses in dependency files pin users to somebody's mirror; the package name, version and hash are enough.
"""

import re
import subprocess
import sys
from pathlib import Path

BUILD_FILES = re.compile(
    r"(^|/)(requirements[^/]*/.*|requirements[^/]*\.txt|[^/]*\.lock|[^/]*lock\.(toml|json|yaml)|pyproject\.toml|setup\.(py|cfg)"
    r"|pom\.xml|settings\.xml|Makefile|[^/]*\.mk|[^/]*\.cfg|[^/]*\.ini|\.npmrc|pip\.conf|package\.json|[^/]*\.sh|\.ci/.*)$"
)
ADDRESS = re.compile(
    r"\b[a-z][a-z0-9+.-]*://\S+|--(extra-)?index-url|--find-links|(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}:\d+", re.IGNORECASE
)
MACHINE_PATH = re.compile(r"(?<![\w.])/(home|Users)/[a-z]\w*/|(?<![\w.])/root/(?!\.?\s)")


def problems_in(path: str, text: str) -> list[str]:
    """Lines of one tracked file that must not be committed."""
    checks = [(MACHINE_PATH, "a path of one machine")]
    if BUILD_FILES.search(path):
        checks.append((ADDRESS, "a download address"))
    return [
        f"{path}:{number}: {what}: {line.strip()[:100]}"
        for number, line in enumerate(text.splitlines(), 1)
        for pattern, what in checks
        if pattern.search(line)
    ]


def main() -> int:
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, check=True
    ).stdout.decode()
    found: list[str] = []
    for path in filter(None, tracked.split("\0")):
        if path == "tools/check_addresses.py" or not Path(path).is_file():
            continue
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += problems_in(path, text)
    print("\n".join(found) or "no download address in build files")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
