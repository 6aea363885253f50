"""Fails when a dependency or build file holds a download address, or a tracked file holds a path of one machine.

Addresses in dependency files pin users to somebody's mirror; the package name, version and hash are enough.
"""

import re
import subprocess
import sys
from pathlib import Path

BUILD_FILES = re.compile(
    r"(^|/)(requirements[^/]*(/.*|\.txt|\.in)|constraints[^/]*\.txt|[^/]*\.lock|[^/]*lock\.(toml|json|yaml)|[^/]*\.toml"
    r"|setup\.(py|cfg)|pom\.xml|settings\.xml|[^/]*\.gradle(\.kts)?|Makefile|[^/]*\.mk|[^/]*\.cfg|[^/]*\.ini|\.npmrc"
    r"|pip\.conf|package\.json|[^/]*\.sh|Dockerfile[^/]*|compose[^/]*\.ya?ml|(conda|environment)\.ya?ml|\.ci/.*|\.github/.*"
    r"|tests/services/.*|src/penstock/testing/.*)$"
)
PINNED = re.compile(r"^([A-Za-z0-9._-]+(\[[^]]*\])?==[^ @]+( ;.*)?( \\)?|    --hash=sha256:[0-9a-f]{64}( \\)?|#.*|)$")
ADDRESS = re.compile(
    r"\b[a-z][a-z0-9+.-]*://(?!127\.0\.0\.1|localhost|\{)\S+|(extra-)?index-url|find-links|\b(PIP|UV)_[A-Z_]*(INDEX|LINKS)"
    r"|(?<![\w.-])(?!127\.)(?:\d{1,3}\.){3}\d{1,3}[:/]\w",
    re.IGNORECASE,
)
MACHINE_PATH = re.compile(r"(?<![\w.])/(home/\w+|Users/\w+|root)/")


def problems_in(path: str, text: str) -> list[str]:
    """Lines of one tracked file that must not be committed."""
    problems: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        what = ""
        if MACHINE_PATH.search(line):
            what = "a path of one machine"
        elif BUILD_FILES.search(path) and ADDRESS.search(line):
            what = "a download address"
        elif path.startswith("requirements/") and not PINNED.match(line):
            what = "neither name, version and marker, nor a hash"
        if what:
            problems.append(f"{path}:{number}: {what}: {line.strip()[:100]}")
    return problems


def main() -> int:
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, check=True
    ).stdout.decode()
    problems: list[str] = []
    for path in filter(None, tracked.split("\0")):
        if path == "tools/check_addresses.py" or not Path(path).is_file():
            continue
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        problems += problems_in(path, text)
    print("\n".join(problems) or "no download address in build files")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
